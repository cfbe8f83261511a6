//! Standard streams and descriptors at their edges.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::bench::{Bench, Ended, binary};

fn with_stdin(bench: &Bench, words: &[&str], bytes: &[u8]) -> Ended {
    let mut child = bench
        .command(&["--stdin"], words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The program may stop reading before all is written.
            let _ = stdin.write_all(bytes);
        });
        Ended {
            output: child.wait_with_output().unwrap(),
        }
    })
}

#[test]
fn a_huge_standard_input_arrives_whole() {
    let bench = Bench::new();
    let bytes = vec![b'x'; 64 << 20];
    let ended = with_stdin(&bench, &["wc", "-c"], &bytes);
    ended.assert_code(0);
    assert_eq!(ended.stdout(), format!("{}\n", bytes.len()));
}

#[test]
fn a_program_that_does_not_read_its_input_ends_all_the_same() {
    let bench = Bench::new();
    let bytes = vec![b'x'; 16 << 20];
    with_stdin(&bench, &["true"], &bytes).assert_code(0);
    let ended = with_stdin(&bench, &["head", "-c", "3"], &bytes);
    ended.assert_code(0);
    assert_eq!(ended.stdout(), "xxx");
    bench.assert_nothing_left();
}

#[test]
fn without_the_flag_standard_input_is_empty() {
    let bench = Bench::new();
    let mut child = bench
        .command(&[], &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"typed");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), vec![]));
}

/// A shell starts it with descriptors closed; `run` is the rest of its command line.
fn in_shell(bench: &Bench, before: &str, run: &str) -> Ended {
    let script = format!(
        "{before}; exec '{}' --state-dir '{}' run {run}",
        binary().display(),
        bench.state().display()
    );
    let mut command = Command::new("sh");
    Ended::of(command.args(["-c", &script]).current_dir(bench.work()))
}

#[test]
fn closed_standard_streams_do_no_harm() {
    let bench = Bench::new();
    in_shell(&bench, "exec 0<&-", "-- cat").assert_code(0);
    in_shell(&bench, "exec 0<&-", "--stdin -- cat").assert_code(0);
    let ended = in_shell(&bench, "exec 1>&-", "-- sh -c 'echo lost; : > ran; exit 7'");
    assert!(bench.mark("ran").exists() || ended.code() != Some(0));
    let ended = in_shell(
        &bench,
        "exec 0<&- 1>&- 2>&-",
        "-- sh -c 'echo lost; exit 0'",
    );
    assert!(ended.output.stderr.is_empty());
    // Whatever was opened first must not have become a standard stream of the program.
    bench.run(&[], &["true"]).assert_code(0);
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
}

#[test]
fn descriptors_of_the_caller_are_not_inherited() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("secret"), "hunter2").unwrap();
    let before = format!("exec 7<'{}'", bench.path().join("secret").display());
    let ended = in_shell(&bench, &before, "-- sh -c 'ls /proc/self/fd; cat <&7'");
    assert_ne!(ended.code(), Some(0));
    assert!(!ended.stdout().contains("hunter2"));
}

#[test]
fn few_open_files_are_a_clear_error_or_enough() {
    let bench = Bench::new();
    bench.run(&[], &["true"]).assert_code(0);
    for most in (4..=40).step_by(4) {
        let ended = in_shell(&bench, &format!("ulimit -n {most}"), "-- true");
        match ended.code() {
            Some(0) => {}
            Some(125 | 2) => {
                ended.assert_says(&["error["]);
                assert!(!ended.stderr().contains("panicked"), "{}", ended.stderr());
            }
            other => panic!("with {most} files: {other:?} {}", ended.stderr()),
        }
    }
    // Enough for any real host.
    in_shell(&bench, "ulimit -n 64", "-- true").assert_code(0);
    bench.run(&[], &["true"]).assert_code(0);
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
    assert!(bench.execs().iter().all(|exec| exec.status.is_final()));
}

#[test]
fn output_without_end_is_cut_in_the_record_and_passes_in_whole() {
    let bench = Bench::new();
    let ended = bench.run(
        &["--max-output", "64K"],
        &["sh", "-c", "yes | head -c 3000000"],
    );
    ended.assert_code(0);
    assert_eq!(ended.output.stdout.len(), 3_000_000);
    let record = &bench.execs()[0];
    assert!(record.stdout_truncated);
    assert_eq!(record.stdout_bytes, 3_000_000);
    let marker = 1 << 10;
    assert!(record.stdout.len() <= (64 << 10) + marker);
}

#[test]
fn a_record_shows_no_more_output_than_is_kept_and_says_what_it_leaves_out() {
    let bench = Bench::new();
    let both = "seq 1 100; seq 1 100 >&2";
    let ended = bench.run(&["--max-output", "10"], &["sh", "-c", both]);
    ended.assert_code(0);
    let record = &bench.execs()[0];
    for (shown, truncated) in [
        (&record.stdout, record.stdout_truncated),
        (&record.stderr, record.stderr_truncated),
    ] {
        assert_eq!(shown, "1\n2\n3\n… 282 bytes omitted …\n\n100\n");
        assert!(truncated);
    }
    // What just fits is whole, and not said to be cut.
    bench
        .run(&["--max-output", "10"], &["seq", "5"])
        .assert_code(0);
    let fits = bench.execs().into_iter().find(|it| it.stdout_bytes == 10);
    let fits = fits.unwrap();
    assert_eq!(fits.stdout, "1\n2\n3\n4\n5\n");
    assert!(!fits.stdout_truncated);
}
