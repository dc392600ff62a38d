//! The connections that a client shares with those made from it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::config::Origin;
use crate::error::Error;
use crate::process::PerProcess;
use crate::wire::{Transport, keep_alive};

/// Connections of one service, each made by the first call that needs it.
#[derive(Debug)]
pub(super) struct Pools {
    origin: Arc<Origin>,
    /// How long the usual connections may be silent.
    silence: Duration,
    usual: ByRuntime,
    /// Connections that may be silent for longest, for attempts that may take longer than the usual
    /// ones may be silent.
    patient: ByRuntime,
    /// Made with the client; the first call that needs usual connections takes it.
    unused: ArcSwapOption<Transport>,
}

/// A connection belongs to the runtime that opened it.
#[derive(Debug, Default)]
struct ByRuntime {
    shared: PerProcess<Arc<Transport>>,
    /// For threads that drive a call themselves instead of using the shared runtime.
    driven: PerProcess<Arc<Transport>>,
}

impl Pools {
    /// `timeout` is that of the usual attempts. A bad proxy or CA bundle fails here, not at the
    /// first request.
    pub fn new(origin: Arc<Origin>, timeout: Option<Duration>) -> Result<Self, Error> {
        let pools = Self {
            origin,
            silence: keep_alive::silence(timeout),
            usual: ByRuntime::default(),
            patient: ByRuntime::default(),
            unused: ArcSwapOption::empty(),
        };
        let usual = pools.new_transport(pools.silence)?;
        pools.unused.store(Some(usual));
        Ok(pools)
    }

    /// The connections for attempts of this timeout, by the calling thread's own runtime (`driven`)
    /// or by the shared one.
    pub fn transport(
        &self,
        timeout: Option<Duration>,
        driven: bool,
    ) -> Result<Arc<Transport>, Error> {
        let is_patient = keep_alive::silence(timeout) > self.silence;
        let by_runtime = if is_patient {
            &self.patient
        } else {
            &self.usual
        };
        let place = if driven {
            &by_runtime.driven
        } else {
            &by_runtime.shared
        };
        let make = || {
            if is_patient {
                return self.new_transport(keep_alive::LONGEST_SILENCE);
            }
            match self.unused.swap(None) {
                Some(unused) => Ok(unused),
                None => self.new_transport(self.silence),
            }
        };
        place.with(make, Arc::clone)
    }

    /// Closes the connections that are idle.
    pub fn clear(&self) {
        for ByRuntime { shared, driven } in [&self.usual, &self.patient] {
            shared.clear();
            driven.clear();
        }
        self.unused.store(None);
    }

    fn new_transport(&self, silence: Duration) -> Result<Arc<Transport>, Error> {
        Transport::new(Arc::clone(&self.origin), silence).map(Arc::new)
    }
}
