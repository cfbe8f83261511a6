//! The program: how it is started, what it is told, what it says and how it ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Column, Run, is_full};

use crate::table::{Case, Ground};

/// The first says most in one run.
pub const CASES: &[Case] = &[
    Case::new(
        "words, variables and input arrive as given, both streams come back",
        given,
    ),
    Case::new("a program's exit code is the run's", exit_codes),
    Case::new(
        "a signal that ends it is told as 128 and its number",
        signals,
    ),
    Case::new(
        "a name like an engine's option is a program",
        like_an_option,
    ),
    Case::but(
        "arguments may be any bytes",
        &[
            (
                Column::Runc,
                "an engine takes text; refused with the way out",
            ),
            (
                Column::Runsc,
                "an engine takes text; refused with the way out",
            ),
        ],
        any_bytes,
    ),
    Case::new(
        "what an engine cannot pass on is refused, not changed",
        refused_bytes,
    ),
    Case::new("a program that is not there is 127", not_found),
    Case::new("a program that is none is 126", not_executable),
    Case::new(
        "the working directory is the workspace or below it",
        directory,
    ),
    Case::new("both streams are our own, and nothing else is", streams),
    Case::new(
        "large output is whole, and cut where it must be",
        large_output,
    ),
    Case::new("without standard input there is its end at once", no_input),
    Case::new(
        "standard input that nobody reads holds nothing up",
        unread_input,
    ),
];

/// Many times as long as all of them take.
const LONG: Duration = Duration::from_secs(120);

/// How many of a row's runs there are: a container takes seconds for each.
fn some(ground: &Ground, few: usize, all: usize) -> usize {
    match ground.column.is_docker() && !is_full() {
        true => few,
        false => all,
    }
}

fn exit_codes(ground: &Ground) {
    let telling: &[i32] = match ground.column {
        // Those that an engine itself ends with; containers take seconds each.
        Column::Runc | Column::Runsc if !is_full() => &[1, 125, 127, 255],
        _ => &[0, 1, 2, 99, 124, 125, 126, 127, 128, 130, 137, 255],
    };
    let others: Vec<i32> = match ground.column {
        Column::Native if is_full() => (0..=255).filter(|it| !telling.contains(it)).collect(),
        _ => Vec::new(),
    };
    let since = Instant::now();
    for (number, code) in telling.iter().copied().chain(others).enumerate() {
        // On a disk that is busy elsewhere not all of them have the time.
        if number >= telling.len() && since.elapsed() > LONG {
            break;
        }
        let outcome = ground.sh(&format!("exit {code}")).json();
        let status = if code == 0 { "succeeded" } else { "failed" };
        outcome.expect(status, code, None);
        assert_eq!(outcome.record["exit_code"], code, "{}", outcome.record);
        assert_eq!(outcome.record["error"], json!(null));
    }
}

fn signals(ground: &Ground) {
    let all = [("KILL", 9), ("SEGV", 11), ("TERM", 15), ("USR1", 10)];
    for &(name, number) in &all[..some(ground, 2, 4)] {
        let outcome = ground.sh(&format!("kill -{name} $$")).json();
        outcome.expect("failed", 128 + number, None);
        let (code, signal) = (&outcome.record["exit_code"], &outcome.record["signal"]);
        match ground.column {
            Column::Native => assert_eq!((code, signal), (&json!(null), &json!(number))),
            // The first process of a container passes it on as an exit code.
            Column::Runc | Column::Runsc => {
                assert_eq!((code, signal), (&json!(128 + number), &json!(null)));
            }
        }
        assert_eq!(outcome.record["killed"], false);
    }
}

/// One line of what it was given, and then its input as it came.
const SHOW: &str = "import json, os, sys
given = sys.stdin.buffer.read()
variables = open('/proc/self/environ', 'rb').read().split(b'\\0')[:-1]
said = {'words': [os.fsencode(it).hex() for it in sys.argv[1:]], 'directory': os.getcwd(),
        'variables': [it.decode() for it in variables]}
sys.stdout.buffer.write(json.dumps(said).encode() + b'\\n' + given)
sys.stderr.buffer.write(b'\\r\\n\\x1b[31m' + bytes(range(255, -1, -1)))";

/// What every exec has, whatever it runs in.
const ALWAYS: &[&str] = &[
    "GIT_PAGER",
    "GLOVEBOX",
    "GLOVEBOX_EXEC_ID",
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "NO_COLOR",
    "PAGER",
    "PATH",
    "PIP_NO_INDEX",
    "TERM",
    "TRIAL_TAG",
    "USER",
    "UV_OFFLINE",
    "npm_config_offline",
];

fn given(ground: &Ground) {
    let long = "x".repeat(100_000);
    let odd = [
        "", " ", " a  b ", "'", "\"", "`id`", "$(id)", "$HOME", "\\", "\n", "\t\r", "-x", "--",
        "--rm", "*", "ü☃", "{{.}}", "a=b", &long, "",
    ];
    let values = [
        ("A", "x y\nz=ü"),
        ("EMPTY", ""),
        ("PATHS", "$PATH:/x"),
        ("Q", "'\"`\\"),
    ];
    let input: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let mut run = ground
        .run(["/usr/bin/python3", "-c", SHOW].into_iter().chain(odd))
        .with(["--json"])
        .outside("OUTSIDE_SECRET", "must not be seen");
    for (key, value) in values {
        run = run.with(["--env", &format!("{key}={value}")]);
    }
    let output = fed(run, &input);
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    assert_eq!(output.status.code(), Some(0), "{record}");
    assert_eq!(record["status"], "succeeded", "{record}");

    let said = ground.kept(&record, "stdout_path");
    let end = said.iter().position(|it| *it == b'\n').expect("a line");
    assert!(
        said[end + 1..] == input,
        "{} bytes came back",
        said.len() - end - 1
    );
    let down: Vec<u8> = (0..=255).rev().collect();
    let cried = ground.kept(&record, "stderr_path");
    assert_eq!(cried, [&b"\r\n\x1b[31m"[..], &down].concat());

    let said: Value = serde_json::from_slice(&said[..end]).expect("what it saw");
    let hex = |word: &str| word.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        said["words"],
        json!(odd.map(|word| -> String { hex(word) }))
    );
    assert_eq!(said["directory"], "/workspace/work");
    let seen = said["variables"].as_array().expect("variables").iter();
    let seen: BTreeMap<&str, &str> = seen
        .map(|it| it.as_str().and_then(|it| it.split_once('=')))
        .map(|it| it.expect("a variable"))
        .collect();
    for (key, value) in values {
        assert_eq!(seen.get(key), Some(&value), "{key}");
    }
    let mut names: Vec<&str> = seen.keys().copied().collect();
    // An engine names the machine; the name is ours.
    names.retain(|name| *name != "HOSTNAME" && values.iter().all(|(key, _)| key != name));
    let mut expected = ALWAYS.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(seen.get("HOME"), Some(&"/home/sandbox"));
    assert!(seen.get("HOSTNAME").is_none_or(|it| *it == "sandbox"));
    assert!(!said.to_string().contains("must not be seen"));
    let keys = record["env_keys"].as_array().expect("keys");
    assert_eq!(keys.len(), values.len() + 1, "the values are never kept");
    assert!(!record.to_string().contains("DOCKER_HOST"));
}

fn like_an_option(ground: &Ground) {
    let outcome = ground.run(["--privileged", "x"]).json();
    assert_eq!(outcome.code, 127, "{}", outcome.record);
}

fn not_text() -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(vec![0xff, 0xfe, b'a'])
}

fn odd_run(ground: &Ground) -> support::Outcome {
    let show = "import os, sys; print([os.fsencode(it).hex() for it in sys.argv[1:]])";
    let mut command = ["/usr/bin/python3", "-c", show]
        .map(std::ffi::OsString::from)
        .to_vec();
    command.push(not_text());
    ground.run(command).json()
}

fn any_bytes(ground: &Ground) {
    let outcome = odd_run(ground);
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "['fffe61']\n");
}

fn refused_bytes(ground: &Ground) {
    let outcome = odd_run(ground);
    if ground.column.is_docker() {
        assert_eq!(outcome.record["error"]["code"], "invalid_argument");
        assert!(outcome.record["error"]["hints"][0].is_string());
        assert_eq!(outcome.text("stdout"), "");
    }
}

fn not_found(ground: &Ground) {
    let all = ["no-such-program", "./missing", "/no/such/program"];
    for &name in &all[..some(ground, 2, 3)] {
        let outcome = ground.run([name]).json();
        outcome.expect("failed", 127, None);
        assert_eq!(
            outcome.record["error"]["code"], "command_not_found",
            "{name}"
        );
        assert_eq!(
            outcome.text("stderr"),
            "",
            "the engine's words are not the program's"
        );
    }
}

fn not_executable(ground: &Ground) {
    ground.trial.put("plain", "no program");
    for name in ["./plain", "/usr"] {
        let outcome = ground.run([name]).json();
        outcome.expect("failed", 126, None);
        assert_eq!(
            outcome.record["error"]["code"], "command_not_executable",
            "{name}"
        );
        assert_eq!(outcome.text("stderr"), "");
    }
}

fn directory(ground: &Ground) {
    std::fs::create_dir_all(ground.trial.work().join("below/deep er")).expect("a directory");
    let all = [
        ("below/deep er", "/workspace/work/below/deep er"),
        ("/workspace", "/workspace"),
        ("/workspace/artifacts", "/workspace/artifacts"),
    ];
    for &(asked, inside) in &all[..some(ground, 2, 3)] {
        let outcome = ground.run(["pwd"]).with(["--cwd", asked]).json();
        outcome.expect("succeeded", 0, None);
        assert_eq!(outcome.text("stdout"), format!("{inside}\n"));
    }
    let outcome = ground.run(["pwd"]).with(["--cwd", "missing"]).json();
    assert_eq!(
        outcome.record["error"]["code"], "cwd_not_found",
        "{}",
        outcome.record
    );
    // Nothing makes it, as an engine would.
    assert!(!ground.trial.work().join("missing").exists());
}

fn streams(ground: &Ground) {
    let write = "import sys
sys.stdout.buffer.write(bytes(range(256)) + b'no end of line')
sys.stderr.buffer.write(b'\\r\\n\\x1b[31m' + bytes(range(255, -1, -1)))";
    // Without our own notes: a container may have been given the directory.
    let output = ground.python(write).with(["--quiet"]).plain();
    let up: Vec<u8> = (0..=255).collect();
    let down: Vec<u8> = (0..=255).rev().collect();
    assert_eq!(output.stdout, [&up[..], b"no end of line"].concat());
    assert_eq!(output.stderr, [&b"\r\n\x1b[31m"[..], &down].concat());
}

fn large_output(ground: &Ground) {
    const MOST: usize = 2 << 20;
    let write = "import sys
sys.stdout.buffer.write(bytes(range(256)) * 12288)
sys.stderr.buffer.write(bytes(range(256)) * 4096)";
    let outcome = ground.python(write).with(["--max-output", "2M"]).json();
    outcome.expect("succeeded", 0, None);
    let record = &outcome.record;
    for (stream, size) in [("stdout", 3 << 20), ("stderr", 1 << 20)] {
        let whole: Vec<u8> = (0..=255).cycle().take(size).collect();
        assert_eq!(record[format!("{stream}_bytes")], size, "{stream}");
        let is_cut = size > MOST;
        assert_eq!(record[format!("{stream}_truncated")], is_cut, "{stream}");
        let file = ground.kept(record, &format!("{stream}_path"));
        assert!(
            file == whole[..size.min(MOST)],
            "{stream} differs: {} bytes",
            file.len()
        );
        assert!(
            outcome.text(stream).len() < 200_000,
            "the record has an excerpt"
        );
    }
}

fn fed(run: Run<'_>, input: &[u8]) -> std::process::Output {
    let mut child = run
        .with(["--stdin", "--timeout", "60s"])
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start glovebox");
    let mut to = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that does not read it ends the pipe.
        let _ = to.write_all(&input);
    });
    let output = child.wait_with_output().expect("hear glovebox");
    writer.join().expect("the writer");
    output
}

fn no_input(ground: &Ground) {
    let outcome = ground.sh("cat; echo end").with(["--timeout", "60s"]).json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "end\n");
}

fn unread_input(ground: &Ground) {
    let output = fed(ground.sh("exit 5"), &vec![b'x'; 8 << 20]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}
