//! The one service that all readers of `benches/speed.py` read, on one thread.
//!
//! Usage: `responder [USERS [MESSAGES [RENDERED [BODIES]]]]`: so many users (2,000), so
//! many messages each (250), so many lists kept in memory (2,000; later ones are the same with other
//! ids), the bodies (a name in `body.rs`, or their bytes; own). Prints its URL, and serves until it is ended. Secret and Accept are not looked at.

mod body;
mod draw;
mod page;
mod rows;
mod words;

use std::env;
use std::error::Error;
use std::io::Write;
use std::rc::Rc;

use body::Bodies;
use bytes::Buf;
use page::Page;
use rows::{Plan, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

const JSON: &str = "content-type: application/json; charset=utf-8\r\ncontent-length:";

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize, usual: usize| {
        let number = given.get(place).map_or(Ok(usual), |each| each.parse());
        number.map(|number| number.max(1))
    };
    let plan = Plan {
        users: number(0, 2_000)?,
        messages: number(1, 250)?,
        bodies: given.get(3).map_or(Ok(Bodies::Own), |name| name.parse())?,
    };
    let service = Rc::new(Service::new(plan, number(2, 2_000)?));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    LocalSet::new().block_on(&runtime, async move {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            // A client that goes away in the middle is none of the others' business.
            spawn_local(serve(Rc::clone(&service), stream));
        }
    })
}

async fn serve(service: Rc<Service>, mut stream: TcpStream) -> std::io::Result<()> {
    let (mut asked, mut answer) = (Vec::with_capacity(4_096), Vec::with_capacity(512));
    loop {
        let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") else {
            if stream.read_buf(&mut asked).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let target = asked[..end].split(|byte| *byte == b' ').nth(1);
        let target = target
            .and_then(|target| std::str::from_utf8(target).ok())
            .unwrap_or_default();
        answer.clear();
        match Page::of(&service, target) {
            Some(page) => {
                write!(
                    answer,
                    "HTTP/1.1 200 OK\r\n{JSON} {}\r\n\r\n{}",
                    page.length(),
                    page.head
                )?;
                let mut whole = Buf::chain(answer.as_slice(), &*page.rows).chain(page.tail);
                stream.write_all_buf(&mut whole).await?;
            }
            None => {
                write!(answer, "HTTP/1.1 404 Not Found\r\n{JSON} 2\r\n\r\n{{}}")?;
                stream.write_all(&answer).await?;
            }
        }
        asked.drain(..end + 4);
    }
}
