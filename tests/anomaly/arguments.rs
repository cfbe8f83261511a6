//! What is typed: wrong flags, odd bytes, sizes, working directories, environment.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::bench::{Bench, Ended};

fn script(bench: &Bench, name: &str, text: &str, mode: u32) {
    let file = bench.mark(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn an_unknown_flag_is_wrong_usage_and_the_nearest_is_named() {
    let bench = Bench::new();
    let ended = bench.run(&["--memry", "1G"], &["true"]);
    ended.assert_code(2).assert_says(&["--memry", "--memory"]);
    assert!(!bench.state().exists(), "usage errors touch nothing");
}

#[test]
fn a_run_without_a_command_is_wrong_usage() {
    let bench = Bench::new();
    bench.run(&[], &[] as &[&str]).assert_code(2);
    let ended = bench.run(&[], &[""]);
    assert!(matches!(ended.code(), Some(2 | 127)), "{:?}", ended.code());
    ended.assert_says(&["error["]);
}

#[test]
fn wrong_units_are_wrong_usage() {
    let bench = Bench::new();
    for flags in [
        ["--memory", "much"],
        ["--timeout=-1s", "--quiet"],
        ["--pids", "0x10"],
        ["--cpus", "NaN"],
        ["--disk", "99999999999999999999G"],
        ["--memory", ""],
    ] {
        let ended = bench.run(&flags, &["true"]);
        let flag = flags[0].split('=').next().unwrap();
        ended.assert_code(2).assert_says(&[flag]);
    }
}

#[test]
fn a_command_that_does_not_exist_is_127() {
    let bench = Bench::new();
    bench
        .run(&[], &["no-such-command"])
        .assert_code(127)
        .assert_says(&["error[command_not_found]", "`no-such-command`"]);
    bench
        .run(&[], &["./no-such-file"])
        .assert_code(127)
        .assert_says(&["`./no-such-file`"]);
    bench.assert_nothing_left();
}

#[test]
fn a_command_that_only_the_host_sees_is_127_with_the_way_out() {
    let bench = Bench::new();
    let tools = bench.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let tool = tools.join("only-on-the-host");
    std::fs::write(&tool, "#!/bin/sh\necho ran\n").unwrap();
    std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let mut command = bench.command(&[], &["only-on-the-host"]);
    let ended = Ended::of(command.env("PATH", path));
    ended
        .assert_code(127)
        .assert_error_with_hint("command_not_found")
        .assert_says(&["only-on-the-host` on the host"]);
}

#[test]
fn a_file_that_cannot_be_executed_is_126() {
    let bench = Bench::new();
    script(&bench, "plain", "#!/bin/sh\n", 0o644);
    bench
        .run(&[], &["./plain"])
        .assert_code(126)
        .assert_error_with_hint("command_not_executable");
    bench.run(&[], &["./"]).assert_code(126);
    script(&bench, "torn", "#!/no/such/interpreter\n", 0o755);
    let ended = bench.run(&[], &["./torn"]);
    assert!(
        matches!(ended.code(), Some(126 | 127)),
        "{ended:?}",
        ended = ended.code()
    );
    bench.assert_nothing_left();
}

#[test]
fn a_script_without_a_first_line_runs_in_the_shell() {
    let bench = Bench::new();
    script(&bench, "plain", "echo \"$1-$2\"\n", 0o755);
    let ended = bench.run(&[], &["./plain", "a b", "c"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "a b-c\n");
}

#[test]
fn a_working_directory_that_is_missing_or_outside_starts_nothing() {
    let bench = Bench::new();
    let touch = ["sh", "-c", ": > /workspace/work/ran"];
    bench
        .run(&["--cwd", "missing"], &touch)
        .assert_code(126)
        .assert_error_with_hint("cwd_not_found")
        .assert_says(&["missing"]);
    for outside in ["..//..", "/etc", "/", "../../etc", ""] {
        bench
            .run(&["--cwd", outside], &touch)
            .assert_code(2)
            .assert_error_with_hint("invalid_argument");
    }
    std::fs::write(bench.mark("file"), "").unwrap();
    bench.run(&["--cwd", "file"], &touch).assert_code(126);
    assert!(!bench.mark("ran").exists());
    bench.assert_nothing_left();
}

#[test]
fn bytes_that_are_not_utf8_pass_through_exactly() {
    let bench = Bench::new();
    let odd = OsString::from_vec(b"a\xff\xfe\x01\x7f\n\xe9z".to_vec());

    let ended = bench.run(&[], &[OsStr::new("printf"), OsStr::new("%s"), &odd]);
    ended.assert_code(0);
    assert_eq!(ended.output.stdout, odd.as_bytes());

    let mut pair = OsString::from("ODD=");
    pair.push(&odd);
    let mut command = bench.glovebox();
    command.args(["run", "--env"]).arg(&pair);
    command.args(["--", "sh", "-c", "printf %s \"$ODD\""]);
    let ended = Ended::of(&mut command);
    ended.assert_code(0);
    assert_eq!(ended.output.stdout, odd.as_bytes());

    let directory = bench.work().join(&odd);
    std::fs::create_dir(&directory).unwrap();
    let mut command = bench.glovebox();
    command.args(["run", "--cwd"]).arg(&odd);
    command.args(["--", "sh", "-c", "echo in > \"$(printf 'f\\377')\"; pwd"]);
    let ended = Ended::of(&mut command);
    ended.assert_code(0);
    let expected = [b"/workspace/work/", odd.as_bytes(), b"\n"].concat();
    assert_eq!(ended.output.stdout, expected);
    let file = directory.join(OsStr::from_bytes(b"f\xff"));
    assert_eq!(std::fs::read(file).unwrap(), b"in\n");

    let mut command = bench.command(&[], &["sh", "-c", "cat f*; pwd"]);
    let ended = Ended::of(command.current_dir(&directory));
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "in\n/workspace/work\n");

    let program = directory.join(OsStr::from_bytes(b"run\xff"));
    std::fs::write(&program, "#!/bin/sh\necho started\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = bench.glovebox();
    command.current_dir(&directory).args(["run", "--"]);
    let ended = Ended::of(command.arg(OsStr::from_bytes(b"./run\xff")));
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "started\n");
    bench.assert_sound(&[]);
}

#[test]
fn odd_bytes_survive_in_the_record() {
    let bench = Bench::new();
    let odd = OsString::from_vec(b"\xff\xfe".to_vec());
    let ended = bench.run(&["--json"], &[OsStr::new("printf"), OsStr::new("%s"), &odd]);
    ended.assert_code(0);
    let record: glovebox_model::Exec = serde_json::from_slice(&ended.output.stdout).unwrap();
    assert_eq!(record.args[1].as_bytes(), odd.as_bytes());
    assert_eq!(record.stdout_bytes, 2);
    let stored = &bench.execs()[0];
    assert_eq!(stored.args, record.args);
}

#[test]
fn control_characters_of_the_caller_do_not_reach_the_terminal_in_errors() {
    let bench = Bench::new();
    let ended = bench.run(&[], &["no\u{1b}[2Jsuch\u{7}"]);
    ended.assert_code(127);
    assert!(
        !ended.stderr().contains(['\u{1b}', '\u{7}']),
        "{:?}",
        ended.stderr()
    );
}

#[test]
fn two_thousand_arguments_of_a_kibibyte_work() {
    let bench = Bench::new();
    let long = "x".repeat(1024);
    let mut words = vec!["sh", "-c", "echo $#; echo ${#2000}", "sh"];
    words.extend(std::iter::repeat_n(long.as_str(), 2000));
    // As many as the host itself can pass on: what fits there must fit here.
    let ended = bench.run(&[], &words);
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "2000\n1024\n");
}

/// The kernel takes no argument of 128 KiB or more, so one can only come as code.
#[test]
fn code_of_a_mebibyte_is_refused_clearly_and_leaves_nothing() {
    let bench = Bench::new();
    let mut child = bench
        .glovebox()
        .args(["code", "shell"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may stop reading before all is written.
    let _ = child.stdin.take().unwrap().write_all(&vec![b'#'; 1 << 20]);
    let ended = Ended {
        output: child.wait_with_output().unwrap(),
    };
    ended
        .assert_code(2)
        .assert_error_with_hint("invalid_argument")
        .assert_says(&["128 KiB"]);
}

#[test]
fn code_that_is_almost_too_long_still_runs() {
    let bench = Bench::new();
    let mut text = String::from("echo ran\n");
    text.push_str(&"#".repeat((128 << 10) - text.len() - 1));
    std::fs::write(bench.mark("long.sh"), text).unwrap();
    let mut command = bench.glovebox();
    let ended = Ended::of(command.args(["code", "shell", "long.sh"]));
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "ran\n");
}

#[test]
fn a_credential_in_the_environment_is_refused_without_its_value() {
    let bench = Bench::new();
    let secret = "hunter2-and-more";
    let variable = format!("AWS_SECRET_ACCESS_KEY={secret}");
    let ended = bench.run(&["--env", &variable], &["sh", "-c", ": > ran"]);
    ended
        .assert_code(3)
        .assert_error_with_hint("policy_denied")
        .assert_says(&["AWS_SECRET_ACCESS_KEY"]);
    assert!(!ended.stderr().contains(secret) && !ended.stdout().contains(secret));
    let ended = bench.run(&["--json", "--env", &variable], &["true"]);
    ended.assert_code(3);
    assert!(!ended.stderr().contains(secret) && !ended.stdout().contains(secret));
    assert!(!bench.mark("ran").exists());
    for name in ["glovebox.db", "glovebox.db-wal"] {
        let bytes = std::fs::read(bench.state().join(name)).unwrap_or_default();
        let found = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "the value is in `{name}`");
    }
    bench.assert_sound(&[]);
}

#[test]
fn a_bad_environment_key_is_wrong_usage() {
    let bench = Bench::new();
    for bad in ["NOEQUALS", "=value", "1A=x", "A B=x", "A-B=x", "\u{e9}=x"] {
        bench
            .run(&["--env", bad], &["true"])
            .assert_code(2)
            .assert_says(&["error[invalid_argument]"]);
    }
}

#[test]
fn a_value_without_a_key_is_not_printed_whole() {
    let bench = Bench::new();
    // Forgotten `KEY=`: what was typed may be the secret itself.
    let ended = bench.run(&["--env", "sk-live-0123456789abcdef"], &["true"]);
    ended.assert_code(2);
    assert!(
        !ended.stderr().contains("0123456789abcdef"),
        "{}",
        ended.stderr()
    );
}
