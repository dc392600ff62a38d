//! The inspector page. It contains no data, so it needs no token: its script requests the data.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    pub content_type: &'static str,
    pub text: &'static str,
}

/// Only the page's own files may load, and no site may frame it.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                          connect-src 'self'; base-uri 'none'; form-action 'none'; \
                          frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The file at a path below `/__mock`.
#[must_use]
pub fn find(path: &str) -> Option<File> {
    let (content_type, text) = match path {
        "/" => ("text/html; charset=utf-8", include_str!("inspector.html")),
        "/inspector.js" => (SCRIPT, include_str!("inspector.js")),
        "/server.js" => (SCRIPT, include_str!("server.js")),
        "/inspector.css" => ("text/css; charset=utf-8", include_str!("inspector.css")),
        "/inspector.svg" => ("image/svg+xml", include_str!("inspector.svg")),
        _ => return None,
    };
    Some(File { content_type, text })
}
