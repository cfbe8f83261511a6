//! One part of the way out removed at a time: a program sees the difference, or nothing is started.

use std::process::Command;

use glovebox_backend::Sandbox;

use crate::house::Yard;
use crate::network::ground::{Server, networked, open, see};

/// Everything that the parts are there for, each on one line.
const LOOK: &str = r#"
import errno, os, socket
def answer(act):
    try:
        return act()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def dial(host):
    with socket.create_connection((host, 80), PATIENCE) as it:
        it.settimeout(PATIENCE)
        return it.makefile().readline().strip() + " " + it.getsockname()[0]
def datagram(host, port, answered):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.settimeout(PATIENCE)
        it.sendto(b"x", (host, port))
        return it.recv(10).decode() if answered else "sent"
print("SEEN interfaces", sorted(name for _, name in socket.if_nameindex()))
print("SEEN v4", answer(lambda: dial("93.184.216.34")))
print("SEEN v6", answer(lambda: dial("2606:2800:220:1::1")))
print("SEEN name", answer(lambda: datagram("8.8.8.8", 53, True)))
print("SEEN other", answer(lambda: datagram("93.184.216.34", 443, False)))
print("SEEN other v6", answer(lambda: datagram("2606:2800:220:1::1", 443, False)))
print("SEEN cupboard", answer(lambda: open("/run/secrets/new", "w")), answer(lambda: os.statvfs("/run/secrets").f_flag & 15))
"#;

const INTACT: [&str; 7] = [
    "SEEN interfaces ['lo']",
    "SEEN v4 tcp 93.184.216.34:80 127.0.0.1",
    "SEEN v6 tcp [2606:2800:220:1::1]:80 ::1",
    "SEEN name x",
    "SEEN other EPERM",
    "SEEN other v6 EPERM",
    "SEEN cupboard EROFS 15",
];

/// With a part removed, another process looks at what this prints.
pub(crate) fn the_way_out_as_a_program_sees_it() {
    let yard = Yard::new();
    let profile = networked();
    let mut prepared = open(&yard, &profile);
    let way_out = prepared.way_out();
    let removed = std::env::var_os("GLOVEBOX_MUTATION").is_some();
    if removed && way_out.is_err() {
        return;
    }
    let server = way_out.unwrap().map(Server::start);
    // Intact it answers at once; what a part is missing of may never.
    let patience = if removed { 2 } else { 60 };
    let look = format!("PATIENCE = {patience}\n{LOOK}");
    let told = see(prepared, &profile, &look, &[]);
    server.into_iter().for_each(|it| drop(it.stop()));
    match told {
        Err(_) if removed => {}
        told => {
            let told = told.unwrap();
            println!("{}", told.stdout);
            let seen: Vec<&str> = told.stdout.lines().collect();
            assert!(removed || seen == INTACT, "{told:?}");
        }
    }
}

pub(crate) fn a_removed_part_is_noticed() {
    let mut missed = missed_by("root");
    // Root's network namespace comes with its loopback up.
    missed.retain(|it| *it != "loopback up");
    assert_eq!(missed, [""; 0]);
}

/// Started by root, who may become one.
pub(crate) fn a_removed_part_is_noticed_by_a_user() {
    assert_eq!(missed_by("user"), [""; 0]);
}

fn missed_by(caller: &str) -> Vec<&'static str> {
    let parts = [
        "way out",
        "way out Route",
        "way out Redirect",
        "way out Refuse",
        "namespace Net",
        "loopback up",
        "cupboard /run/secrets",
        "cupboard /run/secrets ReadOnly",
        "cupboard /run/secrets NoSuid",
        "cupboard /run/secrets NoDev",
        "cupboard /run/secrets NoExec",
    ];
    let name = format!("{caller}::network::the_way_out_as_a_program_sees_it");
    let is_missed = |part: &&str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([&name, "--exact"])
            .env("GLOVEBOX_MUTATION", part)
            .output()
            .unwrap();
        assert!(output.status.success(), "{caller}, {part}: {output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        said.lines().filter(|it| it.starts_with("SEEN")).eq(INTACT)
    };
    parts.into_iter().filter(is_missed).collect()
}
