//! The programs that a command starts, as the kernel tells a tracer: the command runs in a view like
//! a sandbox's, made by another tool, on a copy of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program by the last part of its name, and its arguments.
pub(crate) type Started = (Vec<u8>, Vec<Vec<u8>>);

/// All that was started, in no order. `environment` is that of a sandbox.
pub(crate) fn started(
    work: &Path,
    environment: &[(String, String)],
    command: &str,
) -> Vec<Started> {
    let lines = trace(work, environment, command, "execve,execveat");
    let mut all: Vec<Started> = lines.iter().filter_map(|line| parse(line)).collect();
    all.sort();
    all
}

/// The lines of the trace of some system calls, with all text in hexadecimal.
pub(crate) fn trace(
    work: &Path,
    environment: &[(String, String)],
    command: &str,
    calls: &str,
) -> Vec<String> {
    let log = tempfile::tempdir().unwrap();
    let mut traced = Command::new("bwrap");
    traced
        .args(["--unshare-all", "--die-with-parent", "--uid", "1000"])
        .args(["--gid", "1000", "--clearenv"])
        .args(["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"])
        .args([
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/lib",
            "/lib",
        ])
        .args([
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--symlink",
            "usr/sbin",
            "/sbin",
        ])
        .args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"])
        .args(["--dir", "/home/sandbox", "--dir", "/var/tmp"])
        .arg("--bind")
        .args([work, Path::new("/workspace/work")])
        .arg("--bind")
        .args([log.path(), Path::new("/trace")])
        .args(["--chdir", "/workspace/work"]);
    for (key, value) in environment {
        traced.args(["--setenv", key, value]);
    }
    // One file for each process, so that no line is broken up by another's.
    let output = traced
        .args(["/usr/bin/strace", "-ff", "-qq", "-v", "-xx", "-s", "65535"])
        .args(["-e", &format!("trace={calls}"), "-e", "signal=none"])
        .args(["-o", "/trace/of", "/bin/sh", "-c", command])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut lines = Vec::new();
    for entry in fs::read_dir(log.path()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        lines.extend(text.lines().map(str::to_owned));
    }
    assert!(!lines.is_empty(), "nothing was traced: {output:?}");
    lines
}

/// `execve("\x2f…", ["\x61…", …], […]) = 0`, and the same with a directory in front.
fn parse(line: &str) -> Option<Started> {
    let rest = line.strip_prefix("execve")?;
    // A thread that becomes another program takes its process's number.
    if !line.trim_end().ends_with("= 0") && !line.contains("<pid changed to") {
        return None;
    }
    let (program, rest) = rest.split_once('[')?;
    let (argv, _) = rest.split_once(']')?;
    let program = quoted(program).next()?;
    let name = program.rsplit(|byte| *byte == b'/').next()?.to_vec();
    Some((name, quoted(argv).map(|it| settle(&it)).collect()))
}

fn quoted(text: &str) -> impl Iterator<Item = Vec<u8>> {
    let inside = text.split('"').skip(1).step_by(2);
    inside.map(|it| {
        let pairs = it.split("\\x").skip(1);
        let byte = |pair| u8::from_str_radix(pair, 16).expect("hexadecimal");
        pairs.map(byte).collect()
    })
}

/// Without what is another in each run: a compiler's names for what lies in `/tmp`, and the numbers
/// by which a process that is made hears of its maker.
pub(crate) fn settle(argument: &[u8]) -> Vec<u8> {
    let mut settled = Vec::with_capacity(argument.len());
    let mut rest = argument;
    'next: while let Some((first, tail)) = rest.split_first() {
        for (mark, drops) in [
            (&b"/tmp/cc"[..], 6),
            (b"_fd=", 0),
            (b"_handle=", 0),
            (b"/.tmp-", 0),
            (b"resource_tracker import main;main(", 0),
        ] {
            if let Some(after) = rest.strip_prefix(mark) {
                settled.extend_from_slice(mark);
                let digits = after.iter().take_while(|it| it.is_ascii_digit()).count();
                rest = &after[(if drops > 0 { drops } else { digits }).min(after.len())..];
                continue 'next;
            }
        }
        settled.push(*first);
        rest = tail;
    }
    settled
}
