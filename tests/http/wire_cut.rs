//! The way from a server to its database, which a test may cut and mend.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Cut, it ends every connection and takes none.
pub(crate) struct Wire(Arc<State>);

#[derive(Default)]
struct State {
    is_cut: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Wire {
    /// With the database's address by this way.
    pub(crate) fn to(url: &str) -> (Self, String) {
        let (before, rest) = url.rsplit_once('@').expect("an address");
        let (target, path) = rest.split_once('/').expect("a database");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<State>::default();
        let (shared, target) = (Arc::clone(&state), target.to_owned());
        // Ends with the process of the test.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                shared.join(client, &target);
            }
        });
        (Self(state), format!("{before}@{address}/{path}"))
    }

    pub(crate) fn cut(&self) {
        self.0.is_cut.store(true, Ordering::SeqCst);
        for stream in self.0.open.lock().expect("the wire").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.0.is_cut.store(false, Ordering::SeqCst);
    }
}

impl State {
    fn join(&self, client: TcpStream, target: &str) {
        let Ok(server) = TcpStream::connect(target) else {
            return;
        };
        let mut open = self.open.lock().expect("the wire");
        if self.is_cut.load(Ordering::SeqCst) {
            return;
        }
        let pairs = [(&client, &server), (&server, &client)];
        for (from, to) in pairs {
            let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
                return;
            };
            thread::spawn(move || carry(from, to));
        }
        open.extend([client, server]);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
