//! What the readers in Rust share: the pages that they fetch, and what is measured of them.

use std::error::Error;
use std::time::Instant;
use std::{env, fs};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

pub const CONNECTIONS: usize = 16;
const LIMIT: usize = 99;
pub const FIRST_USER: usize = 1_000_001;

pub type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The service's URL, its number of users and of messages of each, and where in each list to begin.
pub struct Given {
    url: String,
    users: usize,
    messages: usize,
    from: usize,
}

impl Given {
    pub fn parse() -> Fallible<Self> {
        let given: Vec<String> = env::args().skip(1).collect();
        let [url, users, messages, from @ ..] = given.as_slice() else {
            return Err("the arguments are URL USERS MESSAGES [FROM]".into());
        };
        Ok(Self {
            url: url.clone(),
            users: users.parse()?,
            messages: messages.parse()?,
            from: from.first().map_or(Ok(0), |from| from.parse())?,
        })
    }

    pub fn rows(&self) -> usize {
        self.users * self.messages
    }

    /// The URLs of all pages of users and of messages.
    pub fn pages(&self) -> Vec<String> {
        let page = |list: &str, offset| {
            format!("{}/external/{list}?offset={offset}&limit={LIMIT}", self.url)
        };
        let mut pages: Vec<String> = (0..self.users)
            .step_by(LIMIT)
            .map(|offset| page("users", offset))
            .collect();
        for user in FIRST_USER..FIRST_USER + self.users {
            let list = format!("users/{user}/messages");
            let offsets = (self.from..self.messages).step_by(LIMIT);
            pages.extend(offsets.map(|at| page(&list, at)));
        }
        pages
    }
}

pub struct Stopwatch {
    began: Instant,
    cpu: f64,
}

impl Stopwatch {
    pub fn start() -> Fallible<Self> {
        Ok(Self {
            began: Instant::now(),
            cpu: cpu_seconds()?,
        })
    }

    /// Prints rows, seconds, CPU seconds and the peak of memory in MB as JSON, as the readers in
    /// Python do.
    pub fn report(&self, rows: usize) -> Fallible<()> {
        let (seconds, cpu) = (
            self.began.elapsed().as_secs_f64(),
            cpu_seconds()? - self.cpu,
        );
        let peak = peak_megabytes()?;
        println!(r#"{{"rows": {rows}, "seconds": {seconds}, "cpu": {cpu}, "peak_mb": {peak}}}"#);
        Ok(())
    }
}

/// User and system seconds of this process.
fn cpu_seconds() -> Fallible<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Not `ru_maxrss`: after a fork that starts with what the parent held.
fn peak_megabytes() -> Fallible<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("no VmHWM")?.parse::<f64>()? * 1024.0 / 1e6)
}
