//! The program: how it is started, what it is told, what it says and how it ends.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use support::Column;

use crate::table::{Case, Ground};

pub const CASES: &[Case] = &[
    Case::new("a program's exit code is the run's", exit_codes),
    Case::new(
        "a signal that ends it is told as 128 and its number",
        signals,
    ),
    Case::new("arguments arrive as they were given", arguments),
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
        "the environment is complete and nothing is inherited",
        environment,
    ),
    Case::new(
        "the working directory is the workspace or below it",
        directory,
    ),
    Case::new("both streams come through, byte for byte", streams),
    Case::new(
        "large output is whole, and cut where it must be",
        large_output,
    ),
    Case::new("standard input arrives, byte for byte", input),
    Case::new("without standard input there is its end at once", no_input),
    Case::new(
        "standard input that nobody reads holds nothing up",
        unread_input,
    ),
];

/// Many times as long as all of them take.
const LONG: Duration = Duration::from_secs(120);

fn exit_codes(ground: &Ground) {
    let telling = [0, 1, 2, 99, 124, 125, 126, 127, 128, 130, 137, 255];
    let others: Vec<i32> = match ground.column {
        Column::Native => (0..=255).filter(|it| !telling.contains(it)).collect(),
        // Containers take seconds each.
        Column::Runc | Column::Runsc => Vec::new(),
    };
    let since = Instant::now();
    for (number, code) in telling.into_iter().chain(others).enumerate() {
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
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("USR1", 10)] {
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

const SHOW: &str = "import os, sys; print([os.fsencode(it).hex() for it in sys.argv[1:]])";

fn shown(words: &[&[u8]]) -> String {
    let hex = |word: &&[u8]| word.iter().map(|byte| format!("{byte:02x}")).collect();
    let words: Vec<String> = words.iter().map(hex).collect();
    format!(
        "[{}]\n",
        words
            .iter()
            .map(|it| format!("'{it}'"))
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn arguments(ground: &Ground) {
    let long = "x".repeat(100_000);
    let odd = [
        "", " ", " a  b ", "'", "\"", "`id`", "$(id)", "$HOME", "\\", "\n", "\t\r", "-x", "--",
        "--rm", "*", "ü☃", "{{.}}", "a=b", &long, "",
    ];
    let command = ["/usr/bin/python3", "-c", SHOW].into_iter().chain(odd);
    let outcome = ground.run(command).json();
    outcome.expect("succeeded", 0, None);
    let expected = shown(&odd.map(str::as_bytes));
    assert_eq!(
        String::from_utf8_lossy(&ground.kept(&outcome.record, "stdout_path")),
        expected
    );
    // A name that would be an option of an engine's is a program that is not there.
    let outcome = ground.run(["--privileged", "x"]).json();
    assert_eq!(outcome.code, 127, "{}", outcome.record);
}

fn not_text() -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(vec![0xff, 0xfe, b'a'])
}

fn odd_run(ground: &Ground) -> support::Outcome {
    let mut command = ["/usr/bin/python3", "-c", SHOW]
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
    for name in ["no-such-program", "/no/such/program", "./missing"] {
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

fn environment(ground: &Ground) {
    let values = [
        ("A", "x y\nz=ü"),
        ("EMPTY", ""),
        ("PATHS", "$PATH:/x"),
        ("Q", "'\"`\\"),
    ];
    let mut run = ground.run(["/usr/bin/env", "-0"]);
    for (key, value) in values {
        run = run.with(["--env", &format!("{key}={value}")]);
    }
    let outcome = run.outside("OUTSIDE_SECRET", "must not be seen").json();
    outcome.expect("succeeded", 0, None);
    let text = ground.kept(&outcome.record, "stdout_path");
    let text = String::from_utf8(text).expect("text");
    let seen: std::collections::BTreeMap<&str, &str> = text
        .split_terminator('\0')
        .map(|it| it.split_once('=').expect("a variable"))
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
    assert!(!text.contains("must not be seen"));
    let keys = outcome.record["env_keys"].as_array().expect("keys");
    assert_eq!(keys.len(), values.len() + 1, "the values are never kept");
    assert!(!outcome.record.to_string().contains("DOCKER_HOST"));
}

fn directory(ground: &Ground) {
    std::fs::create_dir_all(ground.trial.work().join("below/deep er")).expect("a directory");
    for (asked, inside) in [
        (None, "/workspace/work"),
        (Some("below/deep er"), "/workspace/work/below/deep er"),
        (Some("/workspace/artifacts"), "/workspace/artifacts"),
        (Some("/workspace"), "/workspace"),
    ] {
        let run = ground.run(["pwd"]);
        let run = match asked {
            Some(asked) => run.with(["--cwd", asked]),
            None => run,
        };
        let outcome = run.json();
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
    let outcome = ground.python(write).json();
    assert_eq!(ground.kept(&outcome.record, "stdout_path"), output.stdout);
    assert_eq!(ground.kept(&outcome.record, "stderr_path"), output.stderr);
}

fn large_output(ground: &Ground) {
    const SIZE: usize = 3 << 20;
    let write = "import sys
for stream in (sys.stdout, sys.stderr): stream.buffer.write(bytes(range(256)) * 12288)";
    let whole: Vec<u8> = (0..=255).cycle().take(SIZE).collect();
    let cases = [
        (&[][..], SIZE, false),
        (&["--max-output", "64K"][..], 64 << 10, true),
    ];
    for (options, kept, truncated) in cases {
        let outcome = ground.python(write).with(options).json();
        outcome.expect("succeeded", 0, None);
        for stream in ["stdout", "stderr"] {
            let record = &outcome.record;
            assert_eq!(record[format!("{stream}_bytes")], SIZE, "{stream}");
            assert_eq!(record[format!("{stream}_truncated")], truncated, "{stream}");
            let file = ground.kept(record, &format!("{stream}_path"));
            assert!(
                file == whole[..kept],
                "{stream} differs: {} bytes",
                file.len()
            );
            assert!(
                outcome.text(stream).len() < 200_000,
                "the record has an excerpt"
            );
        }
    }
}

fn fed(ground: &Ground, command: &[&str], input: &[u8]) -> std::process::Output {
    let mut child = ground
        .run(command)
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

fn input(ground: &Ground) {
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let output = fed(ground, &["cat"], &bytes);
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout == bytes,
        "{} bytes came back",
        output.stdout.len()
    );
}

fn no_input(ground: &Ground) {
    let outcome = ground.sh("cat; echo end").with(["--timeout", "60s"]).json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "end\n");
}

fn unread_input(ground: &Ground) {
    let output = fed(ground, &["sh", "-c", "exit 5"], &vec![b'x'; 8 << 20]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}
