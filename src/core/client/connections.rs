//! The connections that a client shares with those made from it.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Origin;
use crate::error::Error;
use crate::process::PerProcess;
use crate::wire::{Transport, keep_alive};

/// Connections of one service; a forked process opens its own.
#[derive(Debug)]
pub(super) struct Connections {
    origin: Arc<Origin>,
    /// How long they may be silent.
    silence: Duration,
    transport: PerProcess<Arc<Transport>>,
}

impl Connections {
    /// `timeout` is that of the client's attempts. A bad proxy or CA bundle fails here, not at the
    /// first request.
    pub fn new(origin: Arc<Origin>, timeout: Option<Duration>) -> Result<Self, Error> {
        let connections = Self {
            origin,
            silence: keep_alive::silence(timeout),
            transport: PerProcess::empty(),
        };
        connections.transport()?;
        Ok(connections)
    }

    pub fn transport(&self) -> Result<Arc<Transport>, Error> {
        let make = || Transport::new(Arc::clone(&self.origin), self.silence).map(Arc::new);
        self.transport.with(make, Arc::clone)
    }

    /// Closes the connections that are idle.
    pub fn clear(&self) {
        self.transport.clear();
    }
}
