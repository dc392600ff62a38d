//! The client, without Python: `error, encoding, json, model, flat, page, list_state <- config, budget,
//! observer, retry, outage, pace, stars <- transport <- client <- walk, unread <- crawl <- all_messages, planned_users, sync`, with `probe`
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
pub mod feed;
pub mod flat;
pub mod interface;
pub mod json;
pub mod list_state;
pub mod model;
pub mod observer;
pub mod outage;
pub mod pace;
pub mod page;
pub mod planned_users;
pub mod probe;
pub mod process;
pub mod question;
pub mod report;
pub mod retry;
pub mod stars;
pub mod sync;
pub mod timestamp;
pub mod transport;
pub mod unread;
pub mod walk;
