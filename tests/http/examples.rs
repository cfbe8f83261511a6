//! The pages for people with curl do what they say.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use support::{Caller, Start, Trial, glovebox, sh};

/// Commands, and what the page says that they print.
#[derive(Debug, Default)]
struct Step {
    line: usize,
    commands: String,
    printed: Option<String>,
}

/// Blocks of `sh`, each with the block of `text` that follows it, if one does.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            continue;
        };
        let inside = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```");
        let block: String = inside.map(|line| format!("{line}\n")).collect();
        match (kind, steps.last_mut()) {
            ("sh", _) => steps.push(Step {
                line: number + 1,
                commands: block,
                printed: None,
            }),
            ("text", Some(step)) if step.printed.is_none() => step.printed = Some(block),
            (kind, _) => panic!("line {}: what is a block of `{kind}`?", number + 1),
        }
    }
    steps
}

/// `…` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.trim_end(), text.trim_end());
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn a_pattern_leaves_out_only_what_it_says() {
    assert!(fits("{\"a\":…,\"b\":1…}\n", "{\"a\":7,\"b\":1,\"c\":2}\n"));
    assert!(fits("same", "same\n"));
    for (pattern, text) in [
        ("same", "same more"),
        ("a…c", "ab"),
        ("a…", "ba"),
        ("…c", "cd"),
        ("a…a", "a"),
    ] {
        assert!(!fits(pattern, text), "{pattern} {text}");
    }
}

#[test]
fn the_tour_does_what_it_shows() {
    follow(include_str!("../../docs/guide/http.md"), 15);
}

#[test]
fn the_guide_to_approvals_does_what_it_shows() {
    follow(include_str!("../../docs/guide/approvals.md"), 8);
}

/// A server whose disk is busy elsewhere is not well for a while: a reader asks again.
const AGAIN: &str = r#"again() {
    local said
    for _ in {1..60}; do
        said=$("$@")
        [[ $said != *'"status":"ok"'* ]] || break
        sleep 1
    done
    printf %s "$said"
}
"#;
const ASKED_AGAIN: [&str; 2] = [
    "curl -sS \"$GLOVEBOX_SERVER/readyz\"",
    "api '/sandbox/health?probe=true'",
];

fn follow(page: &str, least: usize) {
    let steps = steps(page);
    assert!(steps.len() > least, "{}", steps.len());
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let (bin, out) = (trial.home().join("bin"), trial.home().join("out"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&out).unwrap();
    symlink(glovebox(), bin.join("glovebox")).unwrap();
    // One shell for all of it, as a reader has; each step's output in a file of its own.
    let mut script =
        "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n".to_owned() + AGAIN;
    for (number, step) in steps.iter().enumerate() {
        let file = out.join(number.to_string());
        // On a loaded machine, what comes a second later may be read with what came before.
        let mut commands = step.commands.replace("sleep 1;", "sleep 5;");
        for asked in ASKED_AGAIN {
            commands = commands.replace(asked, &format!("again {asked}"));
        }
        script += &format!("{{\n{commands}\n}} > {} 2>&1\n", file.display());
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    for key in [
        "GLOVEBOX_CONFIG",
        "GLOVEBOX_DATABASE",
        "GLOVEBOX_SERVER",
        "GLOVEBOX_TOKEN",
        "http_proxy",
    ] {
        shell.env_remove(key);
    }
    let ended = shell
        .args(["--noprofile", "--norc", "-c", &script])
        .env("PATH", path)
        .env("TMPDIR", trial.work())
        .env("GLOVEBOX_LOG", "error")
        .current_dir(trial.work())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    for (number, step) in steps.iter().enumerate() {
        let printed = fs::read_to_string(out.join(number.to_string()));
        let printed = printed.unwrap_or_else(|_| panic!("line {}: not reached", step.line));
        let expected = step.printed.as_deref().unwrap_or_default();
        assert!(
            fits(expected, &printed),
            "line {}:\n{}\nsays:\n{expected}\nprints:\n{printed}",
            step.line,
            step.commands
        );
    }
    assert!(ended.status.success(), "{ended:?}");
    trial.end();
}

/// The one exchange that the front page shows.
#[test]
fn the_readme_shows_a_request_as_it_is() {
    let readme = include_str!("../../README.md");
    let from = readme.find("$ curl -s ").expect("a request in the README");
    let (commands, rest) = readme[from + 2..].split_once("/v1/execs\n").unwrap();
    let answer = rest
        .lines()
        .next()
        .unwrap()
        .replace(" … ", "…")
        .replace(", …", "…");
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let command = format!("{commands}/v1/execs")
        .replace("/var/lib/glovebox", trial.state().to_str().unwrap())
        .replace("127.0.0.1:7070", &server.address.to_string());
    let printed = Command::new("bash")
        .args(["-c", &command])
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(fits(&answer, &printed), "says {answer}\nprints {printed}");
    assert_eq!(server.client().post("/v1/execs", &sh("true")).status, 200);
    assert_eq!(server.stop(), 0);
    trial.end();
}
