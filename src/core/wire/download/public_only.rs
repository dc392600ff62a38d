//! Public addresses: what a link that comes with data may make this machine connect to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// The last labels of names that no public name server knows (RFC 6761, RFC 8375), and of those that
/// private networks are told to use or do use.
const PRIVATE_SUFFIXES: [&str; 10] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
    "test",
];

pub type Found = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks a name up by the system.
fn look_up(name: String) -> Found {
    Box::pin(async move {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    })
}

/// A resolver whose look-ups return public addresses only: the connection goes to an address that was
/// checked, and no second look-up can return another one.
#[derive(Clone)]
pub struct PublicOnly {
    pub look_up: fn(String) -> Found,
    pub is_public: fn(IpAddr) -> bool,
    /// The names of proxies, which are the user's own.
    pub proxies: Arc<[String]>,
}

impl PublicOnly {
    pub fn new(proxies: Arc<[String]>) -> Self {
        Self {
            look_up,
            is_public,
            proxies,
        }
    }
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let Self {
            look_up,
            is_public,
            proxies,
        } = self.clone();
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let is_proxy = proxies.contains(&name);
            let found = look_up(name).await?;
            let public = found.iter().filter(|each| is_proxy || is_public(**each));
            let public: Vec<SocketAddr> = public.map(|each| (*each, 0).into()).collect();
            match found.first() {
                Some(first) if public.is_empty() => Err(format!(
                    "its name stands for {first}, which is not a public address"
                )
                .into()),
                _ => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

/// Why no connection is made to the host of this URL; `None` if its name is to be looked up.
pub fn refusal(url: &Url, proxies: &[String]) -> Option<String> {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            let ends_in = |suffix: &&str| {
                name.strip_suffix(*suffix)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            let is_private = !name.contains('.')
                || PRIVATE_SUFFIXES.iter().any(ends_in)
                || proxies.iter().any(|proxy| proxy == name);
            is_private.then(|| format!("{name} is not a public name"))
        }
        Some(Host::Ipv4(address)) => not_public(address.into()),
        Some(Host::Ipv6(address)) => not_public(address.into()),
        None => Some("it names no host".to_owned()),
    }
}

fn not_public(address: IpAddr) -> Option<String> {
    (!is_public(address)).then(|| format!("{address} is not a public address"))
}

/// Whether an address is globally reachable, by the registries of special addresses (RFC 6890).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.segments() {
            // What DNS64 makes of an IPv4 address (RFC 6052).
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                is_public_v4((u32::from(high) << 16 | u32::from(low)).into())
            }
            segments => is_public_v6(segments),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = match (first, second, third) {
        // This network, shared by carriers, protocols, 6to4 relays, benchmarks.
        (0, ..) | (100, 64..128, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..20, _) => true,
        // Multicast and reserved.
        (224.., ..) => true,
        _ => false,
    };
    !(is_special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation())
}

/// Only global unicast, without protocols, Teredo, documentation and 6to4, whose address may hold a
/// private one.
fn is_public_v6(segments: [u16; 8]) -> bool {
    match segments {
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..0x1000, ..] => {
            false
        }
        [0x2000..0x4000, ..] => true,
        _ => false,
    }
}
