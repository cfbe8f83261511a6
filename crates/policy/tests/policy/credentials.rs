//! What looks like a credential looks so to all who look: to policy in a variable, to gates in output, to
//! retrieval in a URL.

use glovebox_egress::retrieve::suspected_secret;
use glovebox_gate::{
    Check, CommandCheck, CommandOutcome, Gate, History, Kinds, NoContents, NoSecrets, RunCommand,
    Subject, judge,
};
use glovebox_model::credential::{PATTERNS, Pattern};
use glovebox_model::{Code, Correlation, EffectCount, Mode, Result, SpaceId, Status, Tier};

use crate::fixture::{run, with_env};

/// No check of this test runs a program.
struct NoCommands;

impl RunCommand for NoCommands {
    fn run_command(&self, _: &CommandCheck) -> Result<CommandOutcome> {
        Ok(CommandOutcome::default())
    }
}

fn policy_finds(value: &str) -> bool {
    match run(with_env(&[("SETTING", value)]), &[]) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.code, Code::PolicyDenied, "{error:?}");
            assert!(!format!("{error:?}").contains(value), "{error:?}");
            true
        }
    }
}

fn gate_finds(line: &str) -> bool {
    let ids = Correlation::of_space(SpaceId::local());
    let subject = Subject {
        status: Status::Succeeded,
        exit_code: Some(0),
        duration_ms: Some(1),
        stdout: line.as_bytes(),
        stdout_here: line.len() as u64,
        stdout_bytes: line.len() as u64,
        stderr_bytes: 0,
        effects: &[],
        effect_count: EffectCount::default(),
        watched: Kinds::ALL,
        changes: None,
        artifacts: &[],
        mode: Mode::Transactional,
        tier: Tier::Safe,
        tool: "shell",
        ids: &ids,
        argv: &[],
        history: History::default(),
        contents: &NoContents,
    };
    let gate = Gate::new("g", vec![Check::NoSecrets(NoSecrets::default())]).unwrap();
    let results = judge(&[gate], &subject, &NoCommands);
    !results.iter().all(|it| it.passed())
}

/// In the path, where a name decides nothing and no value is too random.
fn egress_finds(text: &str) -> bool {
    suspected_secret(&format!("https://example.com/a/{text}/b")).is_some()
}

fn found(text: &str) -> [bool; 3] {
    [policy_finds(text), gate_finds(text), egress_finds(text)]
}

/// A token of so many characters after its beginning.
fn token(pattern: &Pattern, length: usize) -> String {
    let random = "Kx7q2Lm8Rt4Vz9Wy3Bn6Gd1Hj5Pc0Sf";
    let fits = |it: &char| u8::try_from(*it).is_ok_and(pattern.alphabet);
    let tail = random.chars().cycle().filter(fits).take(length);
    pattern.prefix.chars().chain(tail).collect()
}

#[test]
fn every_pattern_is_found_by_policy_gates_and_retrieval() {
    for pattern in PATTERNS {
        let whole = token(pattern, pattern.least);
        assert_eq!(found(&whole), [true; 3], "{whole}");
        let prefixed = format!("id={whole}");
        assert_eq!(found(&prefixed), [true; 3], "{prefixed}");
        let cut = token(pattern, pattern.least - 1);
        assert_eq!(found(&cut), [false; 3], "{cut}");
        let word = format!("x{whole}");
        assert_eq!(found(&word), [false; 3], "{word}");
    }
}

/// Joined here so that no scanner of this repository takes them for real ones.
#[test]
fn keys_tokens_and_passwords_without_a_beginning_of_their_own_are_found_by_all() {
    for parts in [
        ["-----BEGIN RSA PRIVATE", " KEY-----"],
        ["-----BEGIN OPENSSH PRIVATE", " KEY-----"],
        ["-----BEGIN PGP PRIVATE", " KEY BLOCK-----"],
        ["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxIn0x.c2lnbmF0dXJl"],
        ["postgres://me:", "hunter2@db.example.com"],
    ] {
        let text = parts.concat();
        assert_eq!(found(&text), [true; 3], "{text}");
    }
}

#[test]
fn ordinary_text_is_found_by_none() {
    for text in [
        "production",
        "task-0123456789012345678901234567890",
        "mask-sk-short",
        "AKIAshort",
        "eyJ.eyJ.x",
        "ghp_",
        "github_pattern_of_the_day",
        "SG.short",
        "npm_config_cache_of_this_project",
        "9fc6b43126469e3858e2fe86cafb4f0fd5068869",
        "123e4567-e89b-12d3-a456-426614174000",
        "https://example.com/a:b@c",
        "ssh://git@host:22",
    ] {
        assert_eq!(found(text), [false; 3], "{text}");
    }
    // What is public has no place in a URL all the same.
    assert_eq!(found("-----BEGIN CERTIFICATE-----"), [false, false, true]);
}
