//! What gates see is everything, and what cannot be seen is never passed.

use std::fs;
use std::os::unix::fs::MetadataExt;

use glovebox_model::{Deed, FileOp};
use support::Caller;

use crate::ground::{Ground, HELD, Simulated};

const SCOPE: &str = r#"[[gate]]
name = "scope"
check = [{ path_scope = { outside = ["**/.env"] } }, { max_size = { changed_files = 50 } }]
"#;

fn reasons(simulated: &Simulated) -> String {
    let gates = simulated.record["gates"].as_array();
    let checks = gates
        .into_iter()
        .flatten()
        .flat_map(|it| it["validations"].as_array());
    let said = checks.flatten().filter_map(|it| it["reason"].as_str());
    said.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_lies_in_a_removed_directory_is_told_one_by_one() {
    let ground = Ground::root(SCOPE);
    let fill = || {
        for file in ["conf/deep/.env", "src/a", "src/b/c", "other/x"] {
            let file = ground.work().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "TOKEN=1\n").unwrap();
        }
    };
    for (line, path) in [
        ("rm -rf conf src", "conf/deep/.env"),
        ("rm -rf conf; mkdir conf", "conf/deep/.env"),
        ("rm -rf conf; echo x > conf", "conf/deep/.env"),
        ("rm -rf conf; ln -s src conf", "conf/deep/.env"),
        ("mv conf elsewhere", "conf/deep/.env"),
    ] {
        fill();
        let simulated = ground.run(&["--transactional"], line);
        simulated.expect("held", HELD);
        assert!(
            reasons(&simulated).contains(".env"),
            "{line}: {:#}",
            simulated.record
        );
        let touches = |deed: &Deed| match deed {
            Deed::FilesystemWrite(it) => [Some(&it.path), it.from.as_ref()]
                .into_iter()
                .flatten()
                .any(|it| it.display() == path),
            _ => false,
        };
        let effects = ground.effects(simulated.id());
        assert!(
            effects.iter().any(|it| touches(&it.deed)),
            "{line}: {effects:#?}"
        );
        let diff = ground.glovebox(&["diff", simulated.id()]);
        assert!(diff.stdout.contains(".env"), "{line}: {}", diff.stdout);
        ground.glovebox(&["discard", simulated.id()]).assert_code(0);
    }
    // A hundred files in one directory are a hundred files.
    fs::create_dir(ground.work().join("many")).unwrap();
    for number in 0..100 {
        fs::write(ground.work().join(format!("many/{number}")), "x").unwrap();
    }
    let many = ground.run(&[], "rm -rf many");
    many.expect("held", HELD);
    assert!(
        reasons(&many).contains("`changed_files` is 101"),
        "{}",
        reasons(&many)
    );
    assert_eq!(many.record["changes"]["removed"], 101, "{:#}", many.record);
    ground.glovebox(&["discard", many.id()]).assert_code(0);
    // What is kept is done as a whole.
    ground.configure("[[gate]]\nname = \"any\"\ncheck = [\"exit\"]\n");
    fill();
    ground
        .run(&[], "rm -rf conf many; mv src moved")
        .expect("succeeded", 0);
    assert!(!ground.work().join("conf").exists() && !ground.work().join("src").exists());
    assert_eq!(ground.read("moved/b/c"), "TOKEN=1\n");
    ground.end();
}

/// Files that their own program closed, names that are too long to be named, marks of the kernel.
#[test]
fn what_cannot_be_read_is_opened_or_held_back() {
    for caller in [Caller::Root, Caller::User] {
        let Some(ground) = Ground::new(caller, "[[gate]]\nname = \"any\"\ncheck = [\"exit\"]\n")
        else {
            continue;
        };
        for mode in ["--transactional", "--hold", "--simulate"] {
            let closed = ground.run(
                &[mode],
                "mkdir -p d/e; echo in > d/e/f; echo x > f; chmod 000 d/e/f f d/e; chmod 100 d",
            );
            closed.expect("succeeded", 0);
            let effects = ground.effects(closed.id());
            let mut modes: Vec<(String, u32)> = effects
                .iter()
                .filter_map(|it| match &it.deed {
                    Deed::FilesystemWrite(write) if write.operation == FileOp::Created => {
                        Some((write.path.display(), write.after.as_ref()?.mode))
                    }
                    _ => None,
                })
                .collect();
            modes.sort();
            let expected = [("d", 0o100), ("d/e", 0), ("d/e/f", 0), ("f", 0)];
            assert_eq!(
                modes,
                expected.map(|(path, mode)| (path.to_owned(), mode)),
                "{caller:?} {mode}"
            );
            if mode != "--transactional" {
                ground.glovebox(&["apply", closed.id()]).assert_code(0);
            }
            // This test is root, and may look.
            let mode_of = |name| fs::metadata(ground.work().join(name)).unwrap().mode() & 0o777;
            assert_eq!((mode_of("d"), mode_of("d/e"), mode_of("f")), (0o100, 0, 0));
            assert_eq!(ground.read("d/e/f"), "in\n", "{caller:?} {mode}");
            fs::remove_dir_all(ground.work().join("d")).unwrap();
            fs::remove_file(ground.work().join("f")).unwrap();
        }
        let deep = "i=0; while [ $i -lt 60 ]; do d=$(printf '%0100d' 0); mkdir $d && cd $d || exit 1; \
                    i=$((i+1)); done; echo x > f";
        for mode in [&["--transactional"][..], &["--simulate"], &[]] {
            let hidden = ground.run(mode, deep);
            hidden.expect("held", HELD);
            let count = &hidden.record["effect_count"];
            assert!(
                count["dropped"].as_u64() > Some(0),
                "{caller:?} {mode:?}: {count}"
            );
            ground.glovebox(&["discard", hidden.id()]);
        }
        assert_eq!(
            fs::read_dir(ground.work()).unwrap().count(),
            0,
            "{caller:?}"
        );
        ground.end();
    }
}

/// A program that its user may not look into, and one that is nobody's child.
#[test]
fn programs_that_hide_are_counted() {
    let hide = "import ctypes, os\n\
        ctypes.CDLL(None).prctl(4, 0)\n\
        for _ in range(5):\n\
        \x20   if os.fork() == 0:\n\
        \x20       if os.fork() == 0:\n\
        \x20           os.execv('/bin/true', ['true'])\n\
        \x20       os._exit(0)\n\
        \x20   os.wait()\n\
        os.execv('/bin/true', ['true'])\n";
    for caller in [Caller::Root, Caller::User] {
        let gate = "[[gate]]\nname = \"none\"\ncheck = [{ cel = \"effects.all(e, \
                    e.kind != 'process_spawn' || !e.program.endsWith('/true'))\" }]\n";
        let Some(ground) = Ground::new(caller, gate) else {
            continue;
        };
        for mode in [&["--simulate"][..], &["--transactional"], &[]] {
            let hidden = ground.run(mode, &format!("exec python3 -c \"{hide}\""));
            hidden.expect("held", HELD);
            assert_eq!(
                hidden.blocked_by().last(),
                Some(&"none"),
                "{caller:?} {mode:?}: {:#}",
                hidden.record
            );
        }
        ground.end();
    }
}

/// However a place is spelled, what lies there is what is written.
#[test]
fn a_write_through_a_link_is_told_where_it_leads() {
    for caller in [Caller::Root, Caller::User] {
        let Some(ground) = Ground::new(caller, "") else {
            continue;
        };
        for line in [
            "ln -s /etc lnk; echo x > lnk/made",
            "ln -s /etc/made lnk; echo x > lnk",
            "echo x > /proc/self/root/etc/made",
            "ln -s /proc/self/root lnk; mkdir lnk/etc/made",
            "ln -s /etc d; mkdir -p w/x; cd w/x; rm -f ../../d/made",
            "exec 7< /etc; echo x > /proc/self/fd/7/made",
        ] {
            let outside = ground.simulate(line);
            outside.expect("held", HELD);
            assert_eq!(
                outside.blocked_by(),
                ["violations"],
                "{line}: {:#}",
                outside.record
            );
            let told = ground.effects(outside.id());
            let path = |deed: &Deed| match deed {
                Deed::FilesystemWrite(it) => Some(it.path.display()),
                _ => None,
            };
            let made = told
                .iter()
                .filter_map(|it| path(&it.deed))
                .any(|it| it == "/etc/made");
            assert!(made, "{line}: {told:#?}");
            ground.glovebox(&["discard", outside.id()]);
        }
        // What may not be written is told as well, though no layer saw it.
        let closed = ground.run(&["--simulate", "--workspace", "ro"], "echo x > a; mkdir b");
        closed.expect("held", HELD);
        let told = ground.effects(closed.id());
        let refused = told
            .iter()
            .filter(|it| matches!(it.deed, Deed::FilesystemWrite(_)) && !it.would_succeed);
        assert_eq!(refused.count(), 2, "{told:#?}");
        ground.end();
    }
}

/// However a program is told something, or comes to a file: what a gate asks about is known, or it does
/// not pass.
#[test]
fn what_a_gate_asks_about_is_known_or_it_does_not_pass() {
    let cel = |text: &str| format!("[[gate]]\nname = \"g\"\ncheck = [{{ cel = \"{text}\" }}]\n");
    let no_push = cel("effects.all(e, e.kind != 'process_spawn' || !('push' in e.argv))");
    let unread = cel("effects.all(e, e.kind != 'filesystem_read' || e.path != 'secret')");
    let refused = "[[gate]]\nname = \"g\"\ncheck = [\"no_violations\"]\n";
    let own = "import os; print(open(f'/proc/self/task/{os.getpid()}/cwd/secret').read())";
    let attributes = "[[gate]]\nname = \"g\"\ncheck = [\"no_secrets\"]\n";
    let ground = Ground::root("");
    fs::write(ground.work().join("secret"), "TOP").unwrap();
    for (gate, line) in [
        (no_push.as_str(), "/bin/echo $(seq 70) push"),
        (&no_push, "/bin/echo $(seq 3000) push"),
        (&no_push, "/bin/echo $(printf '%070000d' 0) push"),
        (&unread, "exec 3<>secret; cat <&3"),
        (&unread, &format!("python3 -c \"{own}\"")),
        (
            &unread,
            "python3 -c 'import os; os.open(\"secret\", os.O_RDWR | os.O_CREAT)'",
        ),
        (refused, "rm -f /etc/passwd; true"),
        (
            refused,
            "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 1)'; true",
        ),
        (
            attributes,
            "python3 -c 'import os; open(\"a\", \"w\"); os.setxattr(\"a\", \"user.s\", b\"x\")'",
        ),
    ] {
        ground.configure(gate);
        for mode in [&[][..], &["--transactional"]] {
            let judged = ground.run(mode, line);
            judged.expect("held", HELD);
            assert_eq!(judged.blocked_by(), ["g"], "{line}: {:#}", judged.record);
            ground.glovebox(&["discard", judged.id()]);
        }
    }
    ground.configure(&unread);
    ground
        .run(&[], "cat /etc/hostname; /bin/echo $(seq 70)")
        .expect("succeeded", 0);
    ground.end();
}
