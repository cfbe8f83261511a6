//! What of the caller can be found in what it spawned.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use glovebox_cage::Spawner;

use crate::processes::{descriptors, keepers, sockets, wait_until};
use crate::server::{SECRET, Server};

pub(crate) fn a_keeper_has_its_own_descriptors_and_no_other() {
    let root = rustix::process::geteuid().is_root();
    // Something to inherit.
    let _open = std::fs::File::open("/proc/self/status").unwrap();
    let (_reader, _writer) = std::io::pipe().unwrap();
    let spawner = Spawner::fork().unwrap();
    // From those that wait, and from those that are forked for us.
    let handles: Vec<_> = (0..12).map(|_| spawner.spawn().unwrap()).collect();
    let mut seen: HashSet<PathBuf> = HashSet::new();
    for pid in handles.iter().map(|it| it.keeper_pid()) {
        wait_until("it is prepared", || keepers(spawner.pid()).contains(&pid));
        let mut others = descriptors(pid);
        others.retain(|(number, target)| *number > 2 || target != Path::new("/dev/null"));
        let sockets = sockets(pid);
        assert_eq!(sockets.len(), 2, "{others:?}");
        // As root it holds a user namespace open, by the end of a pipe.
        let pipes = others
            .iter()
            .filter(|(_, target)| target.to_string_lossy().starts_with("pipe:"));
        assert_eq!(pipes.count(), usize::from(root), "{others:?}");
        // Its spawner's lease is read, and never written.
        let lease = others
            .iter()
            .filter(|(_, target)| target.to_string_lossy().contains("glovebox-lease"));
        assert_eq!(lease.count(), 1, "{others:?}");
        assert_eq!(others.len(), 3 + usize::from(root), "{others:?}");
        for socket in sockets {
            assert!(seen.insert(socket), "two keepers share a socket");
        }
    }
    if root {
        // Nobody but root may look: one socket of its own, and two for each that waits.
        wait_until("it is at rest", || {
            let waiting = keepers(spawner.pid()).len() - handles.len();
            waiting == 16 && sockets(spawner.pid()).len() == 1 + 2 * waiting
        });
        assert!(sockets(spawner.pid()).iter().all(|it| !seen.contains(it)));
    }
}

pub(crate) fn arguments_and_environment_are_forgotten() {
    let server = Server::start();
    wait_until("keepers wait", || keepers(server.spawner.pid).len() >= 5);
    let read = |pid: i32, file: &str| std::fs::read(format!("/proc/{pid}/{file}"));
    let names = |text: &[u8]| text.windows(SECRET.len()).any(|it| it == SECRET.as_bytes());
    // The server has it, so that looking for it means something.
    assert!(names(&read(server.pid(), "environ").unwrap()));
    assert!(names(&read(server.pid(), "cmdline").unwrap()));
    for pid in keepers(server.spawner.pid) {
        assert!(!names(&read(pid, "environ").unwrap()));
        assert!(!names(&read(pid, "cmdline").unwrap()));
    }
    let spawner = server.spawner.pid;
    assert!(!names(&read(spawner, "cmdline").unwrap()));
    match rustix::process::geteuid().is_root() {
        true => assert!(!names(&read(spawner, "environ").unwrap())),
        // Not even its own user may look into it.
        false => assert!(read(spawner, "environ").is_err() && read(spawner, "maps").is_err()),
    }
}
