//! What is there when the sandbox is gone.

use glovebox_backend::Sandbox;

use crate::house::Yard;
use crate::network::ground::{Server, networked, open, see, wait_until};

/// Where the host sends what it knows no other way for, as the kernel tells it: a sandbox has one
/// route, for everything. Others come and go beside this test, with the networks of an engine.
fn routes() -> Vec<String> {
    // Where each has what tells a route for everything: a destination, or a length in bits.
    let files = [
        ("/proc/net/route", 1, "00000000"),
        ("/proc/net/fib_trie", 0, "/0"),
        ("/proc/net/ipv6_route", 1, "00"),
    ];
    let mut found = Vec::new();
    for (file, column, everything) in files {
        for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
            // The last columns of IPv6 count uses.
            let words: Vec<&str> = line.split_whitespace().take(5).collect();
            if words.get(column) == Some(&everything) {
                found.push(words.join(" "));
            }
        }
    }
    found
}

fn in_network(namespace: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let paths = processes.map(|it| it.path());
    let inside = paths.filter(|path| {
        std::fs::read_link(path.join("ns/net")).is_ok_and(|it| it.to_string_lossy() == namespace)
    });
    inside.map(|it| it.display().to_string()).collect()
}

pub(crate) fn nothing_of_it_is_left_and_the_host_is_untouched() {
    let before = routes();
    let yard = Yard::new();
    let profile = networked();
    let mut prepared = open(&yard, &profile);
    let server = Server::start(prepared.way_out().unwrap().unwrap());
    assert_eq!(routes(), before);
    let code = "import os, socket\nprint(os.readlink('/proc/self/ns/net'))\n\
                for _ in range(50): socket.create_connection(('93.184.216.34', 80)).close()";
    let told = see(prepared, &profile, code, &[]).unwrap();
    assert_eq!(server.stop().len(), 50);
    let namespace = told.stdout.trim();
    assert!(namespace.starts_with("net:["), "{told:?}");
    assert!(wait_until(|| in_network(namespace).is_empty()));
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_ne!(own.to_string_lossy(), namespace);
    assert_eq!(routes(), before);
}
