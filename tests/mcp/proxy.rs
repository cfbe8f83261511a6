//! A way to a server for clients that cannot be given a token: it adds one to each request and
//! changes nothing else, so that whatever the server thinks of the rest is what they hear.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// More than any client here sends before the body.
const HEAD_MOST: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    listens: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn to(server: SocketAddr, token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        let over = Arc::new(AtomicBool::new(false));
        let (is_over, token) = (over.clone(), token.to_owned());
        let listens = std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let token = token.clone();
                // An end that comes early is the client's to notice.
                std::thread::spawn(move || {
                    let _ = pass(client, server, &token);
                });
            }
        });
        Self {
            address,
            over,
            listens: Some(listens),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the one that listens.
        let _ = TcpStream::connect(self.address);
        if let Some(listens) = self.listens.take() {
            let _ = listens.join();
        }
    }
}

/// One request, and then the connection is over: where its body ends need not be known.
fn pass(mut client: TcpStream, server: SocketAddr, token: &str) -> io::Result<()> {
    let (head, begun) = read_head(&mut client)?;
    let mut upstream = TcpStream::connect(server)?;
    // At once: whoever answers to the head alone may be gone before the rest comes.
    let request = [rewritten(&head, token).into_bytes(), begun].concat();
    upstream.write_all(&request)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, upstream.try_clone()?);
    let up = std::thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        // Whoever hangs up does not want the answer any more, and the server should know.
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let down = copy_as_it_comes(&mut upstream, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = up.join();
    down
}

fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(end) = read.windows(4).position(|it| it == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            let head = String::from_utf8(read).map_err(io::Error::other)?;
            return Ok((head, rest));
        }
        let length = client.read(&mut part)?;
        if length == 0 || read.len() > HEAD_MOST {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&part[..length]);
    }
}

fn rewritten(head: &str, token: &str) -> String {
    let mut lines = head.trim_end().split("\r\n");
    let mut new = format!("{}\r\n", lines.next().unwrap_or_default());
    for line in lines {
        let name = line.split(':').next().unwrap_or_default();
        if !name.eq_ignore_ascii_case("connection") && !name.eq_ignore_ascii_case("authorization") {
            new += &format!("{line}\r\n");
        }
    }
    new + &format!("Authorization: Bearer {token}\r\nConnection: close\r\n\r\n")
}

fn copy_as_it_comes(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    let mut part = [0; 16 << 10];
    loop {
        match from.read(&mut part)? {
            0 => return Ok(()),
            length => to.write_all(&part[..length])?,
        }
    }
}
