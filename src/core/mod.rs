//! The client, without Python: `error, encoding, json, model, flat_message, page, list_state <- config, budget,
//! observer, retry, outage, pace, redact <- transport <- client <- walk, unread <- crawl <- all_messages, shard_users, sync`, with `probe`
//! above `client`; `columns` knows what is read alone, and `batches` puts the two together. Imports go
//! only downwards; below all of them is the crate's `clock`.

pub mod all_messages;
pub mod batches;
pub mod budget;
pub mod client;
pub mod columns;
pub mod config;
pub mod crawl;
pub mod encoding;
pub mod error;
pub mod flat_message;
pub mod interface;
pub mod json;
pub mod list_state;
pub mod model;
pub mod observer;
pub mod outage;
pub mod pace;
pub mod page;
pub mod prefetch;
pub mod probe;
pub mod probe_request;
pub mod process;
pub mod redact;
pub mod report;
pub mod retry;
pub mod shard_users;
pub mod sync;
pub mod timestamp;
pub mod transport;
pub mod unread;
pub mod walk;
