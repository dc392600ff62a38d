//! Serves the bytes of one file as JSON at `/external/users`, on one thread as the mock does.
//! Usage: `bare-axum FILE`. Prints its URL, and serves until it is ended.

use std::env;
use std::error::Error;
use std::fs;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Router, serve};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).ok_or("usage: bare-axum FILE")?;
    let body = Bytes::from(fs::read(file)?);
    let answer = move || async move { ([(CONTENT_TYPE, "application/json; charset=utf-8")], body) };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    serve(listener, Router::new().route("/external/users", get(answer))).await?;
    Ok(())
}
