//! This process's id, without asking the kernel each time: a read looks whether it is in a forked
//! child six to ten times, which took 7 % of the CPU of a get and of reading a list of one message.

#![allow(unsafe_code)]

pub use self::known::id;

#[cfg(unix)]
mod known {
    use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

    /// The id, or 0 in a process that has not looked it up; no process has that one.
    static ID: AtomicU32 = AtomicU32::new(0);
    static WATCH: AtomicU8 = AtomicU8::new(NOT_BEGUN);

    const NOT_BEGUN: u8 = 0;
    const BEGUN: u8 = 1;
    const WATCHED: u8 = 2;

    #[inline]
    pub fn id() -> u32 {
        match ID.load(Ordering::Relaxed) {
            0 => look_up(),
            id => id,
        }
    }

    #[cold]
    fn look_up() -> u32 {
        let id = std::process::id();
        // Remembered only once forks are watched. A child that is forked while another thread
        // begins to watch never remembers it.
        if WATCH.load(Ordering::SeqCst) == WATCHED || watch() {
            ID.store(id, Ordering::Relaxed);
        }
        id
    }

    /// Has the id forgotten in each forked child, before anything else runs there.
    fn watch() -> bool {
        let order = Ordering::SeqCst;
        if WATCH
            .compare_exchange(NOT_BEGUN, BEGUN, order, order)
            .is_err()
        {
            return false;
        }
        // SAFETY: `forget` only stores to an atomic, which is allowed in a child of a process with
        // threads, and this module is never unloaded.
        let watched = unsafe { libc::pthread_atfork(None, None, Some(forget)) } == 0;
        if watched {
            WATCH.store(WATCHED, Ordering::SeqCst);
        }
        watched
    }

    extern "C" fn forget() {
        ID.store(0, Ordering::Relaxed);
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_id_is_this_process_s_and_a_child_s_own() {
            for _ in 0..3 {
                assert_eq!(id(), std::process::id());
            }
            // SAFETY: the child only calls what is allowed after a fork with threads, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let own = id() == std::process::id();
                // SAFETY: ends the process without running anything of the parent's.
                unsafe { libc::_exit(i32::from(!own)) };
            }
            let mut status = -1;
            // SAFETY: `status` outlives the call.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
}

#[cfg(not(unix))]
mod known {
    pub use std::process::id;
}
