//! dash and bash as the judges of the strict reader: what it is certain of is what both run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use glovebox_risk::{Step, read, steps};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::argv;

/// `GLOVEBOX_TEST_CASES` asks for more.
const CASES: usize = 4000;

/// Writes its words down. `beta` fails.
const PROGRAM: &str = r#"#!/bin/dash
line=$(for it in "${0##*/}" "$@"; do printf '%s\037' "$it"; done; printf x)
printf '%s\036' "${line%x}" >>"$LOG"
[ "${0##*/}" = alpha ]
"#;

const PIECES: &[&str] = &[
    "alpha",
    "beta",
    "alpha x",
    "beta 'y z'",
    "'ga mma'",
    "\"d $ e\"",
    "\"quoted\"",
    "''",
    "a'b'\"c\"",
    "'$(alpha)'",
    "$x",
    "$(alpha)",
    "`alpha`",
    "$'\\x61lpha'",
    "$\"alpha\"",
    "\\alpha",
    "alp\\\nha",
    "\\\n",
    "{alpha,beta}",
    "{fd}>f",
    "al*",
    "?",
    "[a]",
    "[",
    "]",
    "~",
    "HEAD~1",
    "a#b",
    "#",
    "# note\n",
    "#;alpha\\\n",
    ";",
    ";;",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "\n",
    "\r\n",
    "\t",
    "(",
    ")",
    "((",
    "))",
    "[[",
    "]]",
    "{",
    "}",
    "!",
    "if",
    "then",
    "fi",
    "time",
    "time -p",
    "env",
    "env A=1",
    "env CI=1",
    "timeout 5",
    "nice",
    "command",
    "exec",
    "eval",
    "sh -c 'alpha n'",
    "sh -c \"beta n\"",
    "bash -xc 'alpha; beta'",
    "dash -ec",
    "A=1",
    "A+=1",
    "a[0]=1",
    "x=y",
    ">/dev/null",
    "2>/dev/null",
    "12>/dev/null",
    "> /dev/null",
    ">>/dev/null",
    "</dev/null",
    "2>&1",
    ">&2",
    ">&1x",
    "&>/dev/null",
    "&>",
    ">f",
    "<f",
    "<<E\nalpha\nE\n",
    "<<<x",
    "<(alpha)",
    "2",
    "1",
    "-x",
    "--",
    "=",
    "a=b",
    "@",
    "%1",
    "^",
    "+",
    ",",
    ":",
    ".",
    "/",
    "é",
    "'é'",
    "\u{a0}",
    "\u{1}",
    "\u{7f}",
    "\u{b}",
    "function f",
    "coproc",
    "select",
    "$[",
    "${x}",
    "$((",
    "alias alpha=beta",
    "set -e",
    "builtin",
    "'alpha'",
    "\"beta\" 'x'",
    "'if'",
];

fn script() -> impl Strategy<Value = String> {
    let gap = prop::sample::select(vec![" ", " ", " ", ""]);
    prop::collection::vec((prop::sample::select(PIECES.to_vec()), gap), 1..7).prop_map(|all| {
        all.into_iter()
            .map(|(piece, gap)| format!("{piece}{gap}"))
            .collect()
    })
}

/// A directory with the two programs in `bin`.
fn place(name: &str) -> std::path::PathBuf {
    let directory = std::env::temp_dir().join(format!("glovebox-{name}-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("bin")).unwrap();
    // What is an assignment in bash is a path in dash.
    for below in ["x+=", "x[0]="] {
        std::fs::create_dir_all(directory.join("work").join(below)).unwrap();
    }
    for name in ["alpha", "beta"] {
        let path = directory.join("bin").join(name);
        std::fs::write(&path, PROGRAM).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    directory
}

/// What a shell ran of the two programs, in any order: a pipeline has none.
fn run(shell: &str, script: &str, directory: &Path) -> Vec<Vec<String>> {
    let log = directory.join("log");
    std::fs::write(&log, "").unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.join("bin").display());
    let status = Command::new("timeout")
        .args(["5", shell, "-c", script])
        .current_dir(directory.join("work"))
        .env_clear()
        .env("PATH", path)
        .env("LOG", &log)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_ne!(status.code(), Some(124), "{script:?} does not end");
    let text = std::fs::read_to_string(&log).unwrap();
    let words = |it: &str| it.split_terminator('\x1f').map(str::to_owned).collect();
    let mut ran: Vec<Vec<String>> = text.split_terminator('\x1e').map(words).collect();
    ran.sort();
    ran
}

fn expected(steps: &[Step]) -> Vec<Vec<String>> {
    let logs = |it: &&Step| matches!(it.words[0].as_str(), "alpha" | "beta");
    let mut all: Vec<_> = steps
        .iter()
        .filter(logs)
        .map(|it| it.words.clone())
        .collect();
    all.sort();
    all
}

/// Spellings by which a command slipped past a rule that denies it. Each runs `alpha` in one of the shells.
const HIDDEN: &[&str] = &[
    "alpha",
    ": [[ a\n[[ a || alpha ]]",
    "[[ a && alpha ]]",
    "[[ a | alpha ]]",
    "[[ a; alpha ]]",
    "[[ a # ]]\n]] && alpha",
    "[[ x = y # ]] \n]] || alpha",
    "(( alpha ))",
    "((alpha) )",
    "(( 1 + 1; alpha ))",
    ": $[ ; alpha ; ]",
    ": &>/dev/null alpha",
    ": &>>/dev/null alpha",
    ": $'\\'; alpha; : '",
    "echo $'\\c'; alpha #'",
    "RANDOM='a[$(alpha)]'",
    "SRANDOM='a[$(alpha)]'",
    "HISTCMD='a[$(alpha)]'",
    "OPTIND='a[$(alpha)]'",
    "SECONDS='a[$(alpha)]'",
    "LINENO='a[$(alpha)]'",
    "BASH_ARGV0=x; RANDOM+='a[$(alpha)]'",
    "for RANDOM in 'a[$(alpha)]'; do :; done",
    "for OPTIND in 'a[$(alpha)]'; do :; done",
    "read RANDOM <<< 'a[$(alpha)]'",
    "printf -v RANDOM '%s' 'a[$(alpha)]'",
    "printf -vRANDOM '%s' 'a[$(alpha)]'",
    "read -aRANDOM <<< 'a[$(alpha)]'",
    "declare RANDOM='a[$(alpha)]'",
    "export OPTIND='a[$(alpha)]'",
    "b='a[$(alpha)]'; : ${!b}",
    "b='a[$(alpha)]'; : ${@:b}",
    "b='a[$(alpha)]'; : ${a[0]:b}",
    "b='a[$(alpha)]'; : ${a:b}",
    "b='a[$(alpha)]'; : ${a[b]}",
    "y='$(alpha)'; : ${y@P}",
    "y='$(alpha)'; : ${y@\\\nP}",
    "y='$(alpha)'; : \"${y@P}\"",
    "BASH_CMDS=(git $(command -v alpha)); git",
    "BASH_CMDS[git]=$(command -v alpha); git",
    "shopt -s expand_aliases; BASH_ALIASES[git]=alpha\neval git",
    "POSIXLY_CORRECT=1; BASH_ALIASES[git]=alpha\ngit",
    "x+=/../../bin/alpha; :",
    "x[0]=/../../bin/alpha",
    "{PATH}</dev/null; alpha",
    "coproc PATH { :; }; alpha",
    "coproc alpha",
    "let 'a[$(alpha)]'",
    "test -v 'a[$(alpha)]'",
    "unset 'a[$(alpha)]'",
    "wait -p 'a[$(alpha)]' -n",
    "getopts x 'a[$(alpha)]' -x",
    "mapfile -C alpha -c 1 <<< x",
    "trap alpha EXIT",
    "trap -- 'alpha' 0",
    "PS4='$(alpha)'; set -x; :",
    "PROMPT_COMMAND=alpha bash -ic : ",
    "$'\\x61lpha'",
    "al\\\npha",
    "'al'\"pha\"",
    "{alpha,x}",
    "a=alpha; $a",
    "eval al''pha",
    "command alpha",
    "printf alpha | sh",
    "sh <<E\nalpha\nE",
    "sh <<< alpha",
    ". /dev/stdin <<< alpha",
    "alias x=alpha\nx",
    "f() alpha\nf",
    "f() { alpha; }; f",
    "function f { alpha; }; f",
    "case a in a) alpha;; esac",
    "select x in a; do alpha; break; done <<< 1",
    "if :; then alpha; fi",
    "time alpha",
    "! alpha",
    "exec alpha",
    ": | alpha",
    "(alpha)",
    ": $(alpha) `alpha`",
    ": <(alpha)",
    ": > >(alpha)",
    "cat <<E\n$(alpha)\nE",
    "cat <<$'E'\nalpha\n$E\nalpha\n",
    "env -S alpha",
    "env -S 'A=1 alpha'",
    "find . -maxdepth 0 -exec alpha ';'",
    "echo x | xargs alpha",
    "awk 'BEGIN{system(\"alpha\")}'",
];

/// Whether a rule about `alpha` finds it, or is told that something may be hidden.
fn is_seen(program: &glovebox_model::Program) -> bool {
    let reading = read(program);
    let named = super::commands(&reading);
    named
        .iter()
        .any(|it| it.starts_with("alpha") || it.starts_with('<'))
        || reading.blind.iter().any(|it| it.hides)
}

#[test]
fn nothing_that_a_shell_runs_is_missed_in_silence() {
    let directory = place("seen");
    let (mut ran_by_one, mut missed) = (0, Vec::new());
    for script in HIDDEN {
        let (mut found, mut ran) = (Vec::new(), false);
        for shell in ["dash", "bash"] {
            let all = run(shell, script, &directory);
            let here = all.iter().any(|it| it[0] == "alpha");
            ran |= here;
            // `sh` may be either.
            for name in ["sh", shell] {
                if here && !is_seen(&argv(&[name, "-c", script])) {
                    found.push(format!("{script:?} in {shell} as `{name}`"));
                }
            }
        }
        ran_by_one += usize::from(ran);
        missed.extend(found);
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
    assert!(
        ran_by_one > HIDDEN.len() * 3 / 4,
        "only {ran_by_one} of {} ran",
        HIDDEN.len()
    );
}

#[test]
fn what_is_certain_is_what_both_shells_run() {
    let directory = place("strict");
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let wanted = std::env::var("GLOVEBOX_TEST_CASES").ok();
    let cases = wanted.and_then(|it| it.parse().ok()).unwrap_or(CASES);
    let (mut compared, mut wrong) = (0, Vec::new());
    for _ in 0..cases {
        let script = script().new_tree(&mut runner).unwrap().current();
        let Ok(steps) = steps(&argv(&["sh", "-c", &script])) else {
            continue;
        };
        let told = expected(&steps);
        // All of a list runs, unless a part waits for another's end, or a wrapper does not start it.
        let shells = |it: &String| matches!(it.as_str(), "sh" | "dash" | "bash");
        let bare = steps.iter().all(|it| it.through.iter().all(shells));
        let waits = ["&&", "||", "-e"].iter().any(|it| script.contains(it));
        let whole = bare && !waits;
        for shell in ["dash", "bash"] {
            let ran = run(shell, &script, &directory);
            compared += ran.len();
            let within = ran.iter().all(|it| told.contains(it)) && ran.len() <= told.len();
            if !within || (whole && ran != told) {
                wrong.push(format!(
                    "{shell} {script:?}\n  ran {ran:?}\n  told {told:?}"
                ));
            }
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared > cases / 40, "only {compared} commands ran");
}
