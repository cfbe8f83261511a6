//! The real shell as the judge: every command that bash runs was read, with the same words.

use std::process::Command;

use glovebox_risk::{Reading, Unclear, Word, read};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use super::shell;

/// No program is found, so bash asks this function, which writes the words down.
const PRELUDE: &str = r#"command_not_found_handle() { builtin printf -v line '%s\x1f' "$@"; builtin printf '%s\x1e' "$line" >&9; return 0; }
"#;
/// `GLOVEBOX_TEST_CASES` asks for more.
const CASES: usize = 600;

fn script() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "alpha",
        "beta",
        "'ga mma'",
        "\"de\\\"lta\"",
        "$'\\x61b'",
        "\\e",
        "{p,q}",
        "$(alpha)",
        "`beta x`",
        "<<E\nbody alpha\nE\n",
        "<<'E'\n$(gamma)\nE\n",
        "<<-E\n\t$(beta 1)\n\tE\n",
        ";",
        "&&",
        "||",
        "|",
        "\n",
        "(",
        ")",
        "{",
        "; }",
        "if alpha; then",
        "fi",
        "# note\n",
        "\\\n",
        ">f",
        "2>&1",
        "<(alpha z)",
        "${x:-beta}",
        "\"$(alpha \"b)\")\"",
        "[[ a == b ]]",
        "case a in a)",
        ";; esac",
        "for i in 1 2; do",
        "done",
        "!",
        "a=1",
        "$((1+1))",
        "((1))",
        "al''pha",
        "b\\\neta",
        "\"a\\\nb\"",
        "''",
        "x#y",
        "$(alpha; (beta))",
        "`alpha \\`beta\\``",
        "&",
        ">&2",
        "time",
        "<<<'x y'",
        "$",
        "~",
        "=",
        "a[0]=1",
        "+",
        "{",
        "}",
        "]",
        "[",
        "esac",
        "&>f",
    ]);
    let gap = prop::sample::select(vec![" ", " ", " ", ""]);
    prop::collection::vec((words, gap), 1..9).prop_map(|all| {
        all.into_iter()
            .map(|(word, gap)| format!("{word}{gap}"))
            .collect()
    })
}

/// What bash ran: the words of each command. The pipe ends when the last process of the script does.
fn run(script: &str, directory: &std::path::Path) -> Vec<Vec<String>> {
    let whole = format!("exec 9>&1 >/dev/null 2>&1\n{PRELUDE}{script}");
    let output = Command::new("timeout")
        .args(["5", "bash", "--norc", "--noprofile", "-c", &whole])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(124), "{script:?} does not end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = |it: &str| {
        it.strip_suffix('\x1f')
            .unwrap_or(it)
            .split('\x1f')
            .map(str::to_owned)
            .collect()
    };
    text.split_terminator('\x1e').map(words).collect()
}

/// Words up to the first one that only the shell knows.
fn covers(reading: &Reading, ran: &[String]) -> bool {
    reading.commands.iter().any(|command| {
        let mut at = 0;
        for word in &command.words {
            match word {
                Word::Unknown(_) => return true,
                Word::Known(text) if ran.get(at) == Some(text) => at += 1,
                Word::Known(_) => return false,
            }
        }
        at == ran.len()
    })
}

#[test]
fn every_command_that_bash_runs_was_read() {
    let directory = std::env::temp_dir().join(format!("glovebox-risk-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let mut compared = 0;
    let mut missed = Vec::new();
    let wanted = std::env::var("GLOVEBOX_TEST_CASES").ok();
    let cases = wanted.and_then(|it| it.parse().ok()).unwrap_or(CASES);
    for _ in 0..cases {
        let script = script().new_tree(&mut runner).unwrap().current();
        let reading = read(&shell(&script));
        let dark =
            |it: &glovebox_risk::Blind| matches!(it.why, Unclear::Syntax | Unclear::TooLarge);
        if reading.blind.iter().any(dark) {
            continue;
        }
        for ran in run(&script, &directory) {
            compared += 1;
            if !covers(&reading, &ran) {
                missed.push(format!(
                    "{script:?}\n  ran {ran:?}\n  read {:?}",
                    super::commands(&reading)
                ));
            }
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
    assert!(compared > cases / 4, "only {compared} commands ran");
}
