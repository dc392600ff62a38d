//! What a TLS failure means, and what to do.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError, Error as TlsError};

/// With whom TLS failed.
pub struct Peer {
    pub name: String,
    /// What names its host, for a message.
    pub setting: &'static str,
}

/// Why waiting does not help, if TLS failed in such a way.
pub fn lasting_failure(error: &(dyn StdError + 'static), peer: &Peer) -> Option<String> {
    let failure = cause::<TlsError>(error)?;
    let (name, setting) = (&peer.name, peer.setting);
    let advice = match failure {
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => &format!("the certificate is another host's: check the host in {setting}"),
        TlsError::InvalidCertificate(reason) => certificate_advice(reason),
        TlsError::AlertReceived(AlertDescription::UnrecognisedName) => {
            &format!("it knows no host of this name; check the host in {setting}")
        }
        TlsError::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied,
        ) => &format!("it requires a client certificate, and backread has none; check {setting}"),
        TlsError::AlertReceived(
            AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity
            | AlertDescription::HandshakeFailure,
        ) => {
            "it shares no version of TLS and no cipher with backread, or requires a client \
             certificate; it must offer TLS 1.2 or 1.3"
        }
        TlsError::InvalidMessage(_) => {
            "the server does not speak TLS; check the port and the scheme of base_url and of the \
             proxy"
        }
        TlsError::PeerIncompatible(_) => {
            "it offers nothing newer than TLS 1.1, or no cipher that is still safe; it must offer \
             TLS 1.2 or 1.3"
        }
        _ => return None,
    };
    Some(format!("{name}: {failure}; {advice}"))
}

fn certificate_advice(reason: &CertificateError) -> &'static str {
    match reason {
        CertificateError::UnknownIssuer => {
            "if a private authority issued it, or your network inspects TLS, name that authority's \
             PEM file in ca_bundle or SSL_CERT_FILE; if the server sends no \
             intermediate certificate, it must"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired: it must be renewed, if this machine's clock is right"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet: check this machine's clock"
        }
        CertificateError::Other(reason) if reason.to_string().contains("CaUsedAsEndEntity") => {
            "the server shows an authority's certificate as its own, as `openssl req -x509` makes it; \
             make it with basicConstraints=critical,CA:FALSE, and name it in ca_bundle or \
             SSL_CERT_FILE"
        }
        _ => {
            "if it is the right server, name the PEM file of the authority that issued its \
             certificate in ca_bundle or SSL_CERT_FILE"
        }
    }
}

/// The first error of that type among an error and its causes.
pub fn cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        // The error that an I/O error wraps is not its `source`.
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
