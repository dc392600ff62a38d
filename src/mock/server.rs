//! The server's socket: one thread, one runtime, no Python.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::admin::Admin;
use super::connection::serve_connection;
use super::lane::{Lane, LaneOptions};
use super::lock;
use super::service::{DEFAULT_VENDOR, Service, random_secret};
use super::world::World;

/// The name of the lane for the server's own secret.
pub const MAIN_LANE: &str = "main";

/// Why a server could not start.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct StartError {
    text: String,
    /// The system's error; `None` if an argument is wrong.
    pub source: Option<io::Error>,
}

impl StartError {
    fn argument(argument: &str, problem: &str) -> Self {
        Self {
            text: format!("{argument}: {problem}"),
            source: None,
        }
    }

    fn system(what: &str, source: io::Error) -> Self {
        let text = source.to_string();
        // Without the error number, which Python adds itself.
        let reason = text.split(" (os error").next().unwrap_or(&text);
        Self {
            text: format!("cannot {what}: {reason}"),
            source: Some(source),
        }
    }

    fn listen(host: &str, port: u16, source: io::Error) -> Self {
        let advice = match source.kind() {
            io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
            _ => "choose another port, or 0 for a free one",
        };
        let error = Self::system(&format!("listen on {host}:{port}"), source);
        Self {
            text: format!("{}; {advice}", error.text),
            ..error
        }
    }
}

/// Where a server listens and what it requires of requests.
#[derive(Clone, Debug)]
pub struct Options {
    /// An IP address, or `localhost`.
    pub host: String,
    /// 0 for a free port.
    pub port: u16,
    /// `None` for a random one.
    pub secret: Option<String>,
    /// `None` for [`DEFAULT_VENDOR`].
    pub vendor: Option<String>,
    /// How the main lane answers at first.
    pub lane: LaneOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 0,
            secret: None,
            vendor: None,
            lane: LaneOptions::default(),
        }
    }
}

/// A running mock server. It stops when dropped.
#[derive(Debug)]
pub struct MockServer {
    address: SocketAddr,
    admin: Arc<Admin>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    process: u32,
}

impl MockServer {
    /// Starts a server for `world`; it accepts requests once this returns.
    ///
    /// # Errors
    /// For a host that is not an address, a secret or vendor that no header can carry, or a port
    /// that is taken or not allowed.
    pub fn start(world: Arc<World>, options: Options) -> Result<Self, StartError> {
        let (host, port) = (options.host, options.port);
        let vendor = options.vendor.unwrap_or_else(|| DEFAULT_VENDOR.into());
        check_word("vendor", &vendor, |byte| {
            // As the client: the characters of a media type's name (RFC 6838, 4.2).
            byte.is_ascii_alphanumeric() || b"!#$&-^_.".contains(&byte)
        })?;
        if let Some(secret) = &options.secret {
            check_word("secret", secret, |byte| byte.is_ascii_graphic())?;
        }
        let listen_error = |source| StartError::listen(&host, port, source);
        let listener = TcpListener::bind((read_host(&host)?, port)).map_err(listen_error)?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let no_random_bytes = |error| StartError::system("make a secret", io::Error::other(error));
        let random = random_secret().map_err(no_random_bytes)?;
        let secret = options.secret.unwrap_or_else(|| format!("mock_{random}"));
        let main = Lane::new(MAIN_LANE.into(), secret, &vendor, world, options.lane);
        let service = Arc::new(Service::new(vendor, Arc::new(main)));
        let token = random_secret().map_err(no_random_bytes)?;
        let admin = Arc::new(Admin::new(service, url(address), token));
        let runtime = Builder::new_current_thread().enable_all().build();
        let no_thread = |error| StartError::system("start the mock's thread", error);
        let runtime = runtime.map_err(no_thread)?;
        let (stop, stopped) = oneshot::channel();
        let answering = Arc::clone(&admin);
        let thread = std::thread::Builder::new()
            .name("backread-mock".into())
            .spawn(move || {
                serve(&runtime, listener, &answering, stopped);
                // Stopping the server does not wait for an audit whose result is no longer needed.
                runtime.shutdown_background();
            })
            .map_err(no_thread)?;
        let running = Running {
            stop,
            thread,
            process: std::process::id(),
        };
        Ok(Self {
            address,
            admin,
            running: Mutex::new(Some(running)),
        })
    }

    /// The base URL, such as `http://127.0.0.1:40123`; on loopback if it listens on all addresses.
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// The port that it listens on.
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// The vendor word of the media type.
    pub fn vendor(&self) -> &str {
        self.service().vendor()
    }

    /// The service behind the server.
    pub fn service(&self) -> &Arc<Service> {
        &self.admin.service
    }

    /// The token for the admin interface below `/__mock/`.
    pub fn admin_token(&self) -> &str {
        self.admin.token()
    }

    /// Stops listening and drops every connection; returns once the port is free. Further calls do
    /// nothing, and neither do calls in a forked child, because the thread belongs to the parent.
    pub fn stop(&self) {
        let running = lock(&self.running).take();
        let Some(running) = running else { return };
        if running.process != std::process::id() {
            // Even dropping it would write to an event descriptor that the parent reads.
            std::mem::forget(running);
            return;
        }
        let _ = running.stop.send(());
        let _ = running.thread.join();
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where clients on this machine reach a server: on loopback, if it listens on all addresses.
fn url(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

fn read_host(host: &str) -> Result<IpAddr, StartError> {
    let host = if host == "localhost" {
        "127.0.0.1"
    } else {
        host
    };
    host.parse().map_err(|_| {
        let problem = "is not an IP address; use 127.0.0.1 for this machine only";
        StartError::argument("host", &format!("{host:?} {problem}"))
    })
}

fn check_word(argument: &str, word: &str, allowed: fn(u8) -> bool) -> Result<(), StartError> {
    if !word.is_empty() && word.bytes().all(allowed) {
        return Ok(());
    }
    let problem = "must not be empty, and must hold only characters that its header can carry";
    Err(StartError::argument(argument, problem))
}

fn serve(
    runtime: &Runtime,
    listener: TcpListener,
    admin: &Arc<Admin>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
            return;
        };
        tokio::select! {
            _ = stopped => {}
            () = accept(&listener, admin) => {}
        }
        // A forked child may hold the socket too, and without this would keep the port.
        let _ = SockRef::from(&listener).shutdown(Shutdown::Both);
    });
}

async fn accept(listener: &tokio::net::TcpListener, admin: &Arc<Admin>) {
    // Long enough for file descriptors to be freed if there are none left.
    const PAUSE: Duration = Duration::from_millis(5);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve_connection(stream, Arc::clone(admin)));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
