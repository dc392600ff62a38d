//! Trusted TLS certificates: the system's, and those that the client or its environment adds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

use crate::config::{Origin, on_one_line};
use crate::error::Error;

const FILE_VARIABLE: &str = "SSL_CERT_FILE";
const FOLDERS_VARIABLE: &str = "SSL_CERT_DIR";

pub type Roots = Vec<CertificateDer<'static>>;

/// Roots in addition to those that the platform's verifier finds by itself.
///
/// If one of the variables is set, the verifier, depending on the platform, either uses what it
/// names instead of the system's roots or ignores it. With these, all of them are trusted on each
/// platform.
pub fn added(origin: &Origin) -> Result<Roots, Error> {
    let (file, folders) = (set(FILE_VARIABLE), set(FOLDERS_VARIABLE));
    let mut roots = match &file {
        Some(path) => read(FILE_VARIABLE, Path::new(path))?,
        None => Roots::new(),
    };
    for folder in folders.iter().flat_map(std::env::split_paths) {
        roots.extend(readable(&folder));
    }
    if file.is_some() || folders.is_some() {
        roots.extend(system_folders().iter().flat_map(|folder| readable(folder)));
    }
    roots.extend(bundle(origin)?);
    Ok(roots)
}

/// The TLS certificates in `ca_bundle`.
pub fn bundle(origin: &Origin) -> Result<Roots, Error> {
    match &origin.ca_bundle {
        Some(path) => read("ca_bundle", path),
        None => Ok(Roots::new()),
    }
}

fn set(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// The TLS certificates in a file named by the option or variable `name`; there must be at least
/// one.
fn read(name: &str, path: &Path) -> Result<Roots, Error> {
    let unusable = |reason: &str| {
        Error::configuration(format!(
            "{name} {} {reason}; name a PEM file of certificates, or leave {name} out",
            on_one_line(&path.display().to_string())
        ))
    };
    if path.is_dir() {
        return Err(unusable("is a folder"));
    }
    let no_certificate = |error| match error {
        pem::Error::Io(error) => unusable(&format!("cannot be read ({error})")),
        error => unusable(&format!("holds no PEM certificates ({error})")),
    };
    let found: Roots = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(no_certificate)?;
    let roots: Roots = found.into_iter().filter(is_root).collect();
    match roots.is_empty() {
        true => Err(unusable("holds no PEM certificates")),
        false => Ok(roots),
    }
}

/// The readable TLS certificates in a folder. Errors are ignored: it is the system's folder, or
/// holds other files, too.
fn readable(folder: &Path) -> Roots {
    let mut found = rustls_native_certs::load_certs_from_paths(None, Some(folder)).certs;
    found.retain(is_root);
    found
}

fn is_root(certificate: &CertificateDer<'static>) -> bool {
    RootCertStore::empty().add(certificate.clone()).is_ok()
}

/// Each of these systems also keeps its bundle in one of its folders.
#[cfg(all(unix, not(target_os = "android"), not(target_vendor = "apple")))]
fn system_folders() -> Vec<PathBuf> {
    openssl_probe::candidate_cert_dirs()
        .map(Path::to_owned)
        .collect()
}

/// On these platforms the verifier asks the system, whatever the variables say.
#[cfg(not(all(unix, not(target_os = "android"), not(target_vendor = "apple"))))]
fn system_folders() -> Vec<PathBuf> {
    Vec::new()
}
