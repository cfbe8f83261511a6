//! Checks of what was done.

use glovebox_gate::{
    Check, CommandCheck, CommandOutcome, Content, Deterministic, DiffSize, Gate, History, Hosts,
    MaxSize, PathGlob, PathScope, RunCommand, Subject, digest, judge,
};
use glovebox_model::{
    Approach, Artifact, Bytes, ChangeCount, Code, Confidence, Deed, Effect, EffectCount, Error,
    FailureCode, FileOp, HostPattern, ProcessSpawn, Reported, Result, Stage,
};

use crate::fixture::{
    Files, Runner, bytes, effect, facts, gate, one, request, said, with_subject, write, wrote,
};

const OUT: Option<FailureCode> = Some(FailureCode::OutOfScope);

fn globs(list: &[&str]) -> Vec<PathGlob> {
    list.iter().map(|it| PathGlob::new(it).unwrap()).collect()
}

fn scope(within: &[&str], outside: &[&str]) -> Check {
    Check::PathScope(PathScope {
        within: globs(within),
        outside: globs(outside),
    })
}

fn changed(operation: FileOp, from: Option<&str>, path: &str, kind: &str) -> Effect {
    let mut write = write(path, None);
    write.operation = operation;
    write.from = from.map(bytes);
    write.before = (operation != FileOp::Created).then(|| facts(kind, 1));
    write.after = (operation != FileOp::Removed).then(|| facts(kind, 1));
    effect(Deed::FilesystemWrite(write))
}

#[test]
fn writes_stay_within_their_scope_at_both_ends_of_a_rename() {
    let file = |operation, from, path| changed(operation, from, path, "file");
    let directory = |operation, from, path| changed(operation, from, path, "directory");
    for (done, within, outside, expected) in [
        (wrote("src/a.py"), &["src/**"][..], &[][..], None),
        (wrote("setup.py"), &["src/**"], &[], OUT),
        (wrote("src/.env"), &["src/**"], &["**/.env"], OUT),
        (wrote(".env"), &[], &["**/.env"], OUT),
        (wrote("src/../../x"), &["**"], &[], OUT),
        (wrote("src/../x"), &[], &["y"], OUT),
        (wrote("/etc/passwd"), &["**"], &[], OUT),
        (wrote("/home/u/.env"), &[], &["**/.env"], OUT),
        (
            file(FileOp::Renamed, Some("src/a"), "src/b"),
            &["src/**"],
            &[],
            None,
        ),
        (
            file(FileOp::Renamed, Some("a"), "src/b"),
            &["src/**"],
            &[],
            OUT,
        ),
        (
            file(FileOp::Renamed, Some("src/a"), "b"),
            &["src/**"],
            &[],
            OUT,
        ),
        (
            file(FileOp::Removed, None, "keys/a"),
            &[],
            &["keys/**"],
            OUT,
        ),
        (file(FileOp::Attempted, None, "x"), &["src/**"], &[], OUT),
        (file(FileOp::Touched, None, "x"), &["src/**"], &[], OUT),
        (
            directory(FileOp::Created, None, "src"),
            &["src/**"],
            &[],
            None,
        ),
        (file(FileOp::Replaced, None, "src"), &["src/**"], &[], OUT),
        (
            directory(FileOp::Removed, None, "keys"),
            &[],
            &["keys/**"],
            OUT,
        ),
        (
            directory(FileOp::Renamed, Some("a"), "b"),
            &[],
            &["a/keys/**"],
            OUT,
        ),
        (
            directory(FileOp::Touched, None, "a"),
            &[],
            &["a/keys/**"],
            None,
        ),
        (request("x.org", 1), &["src/**"], &[], None),
    ] {
        let done = [done];
        let check = scope(within, outside);
        let found = with_subject("", &done, |subject| said(check, &subject));
        assert_eq!(
            found, expected,
            "{done:?} within {within:?} outside {outside:?}"
        );
    }
}

#[test]
fn effects_that_nobody_can_look_at_are_not_good() {
    let done = [wrote("src/a")];
    let checks = [
        scope(&["src/**"], &[]),
        Check::NoNetwork,
        Check::NoSecrets(Default::default()),
        Check::DiffSize(DiffSize {
            files: Some(9),
            lines: None,
        }),
        Check::Deterministic(Deterministic),
        Check::MaxSize(MaxSize {
            changed_files: Some(9),
            ..MaxSize::default()
        }),
    ];
    for count in [
        EffectCount {
            total: 2,
            violations: 0,
            dropped: 1,
        },
        EffectCount {
            total: 2,
            violations: 0,
            dropped: 0,
        },
    ] {
        for check in &checks {
            let name = check.name();
            with_subject("", &done, |subject| {
                assert!(one(check.clone(), &subject).passed(), "{name:?}");
                let subject = Subject {
                    effect_count: count,
                    ..subject
                };
                assert!(said(check.clone(), &subject).is_some(), "{name:?}");
            });
        }
    }
}

#[test]
fn requests_go_only_where_they_may() {
    let hosts = |list: &[&str]| {
        let list = list
            .iter()
            .map(|it| HostPattern::new(it).unwrap())
            .collect();
        Check::Hosts(Hosts::new(list).unwrap())
    };
    let said_tool = |target: &str| {
        effect(Deed::ExternalApiCall(Reported {
            target: target.to_owned(),
            action: "post".to_owned(),
            data: None,
        }))
    };
    let mut lookup = request("api.x.org", 53);
    if let Deed::NetworkRequest(it) = &mut lookup.deed {
        it.approach = Approach::Dns;
    }
    for (done, check, expected) in [
        (request("api.x.org", 443), hosts(&["*.x.org:443"]), None),
        (request("api.x.org", 80), hosts(&["*.x.org:443"]), OUT),
        (request("y.org", 443), hosts(&["*.x.org"]), OUT),
        (request("api.x.org", 443), Check::NoNetwork, OUT),
        (lookup.clone(), hosts(&["api.x.org:443"]), None),
        (lookup, hosts(&["y.org"]), OUT),
        (
            said_tool("https://api.x.org/v1"),
            hosts(&["api.x.org:443"]),
            None,
        ),
        (
            said_tool("https://y.org/v1"),
            hosts(&["api.x.org:443"]),
            OUT,
        ),
        (said_tool("orders"), hosts(&["*.x.org"]), OUT),
        (said_tool("orders"), Check::NoNetwork, OUT),
        (wrote("a"), Check::NoNetwork, None),
    ] {
        let done = [done];
        let found = with_subject("", &done, |subject| said(check, &subject));
        assert_eq!(found, expected, "{done:?}");
    }
    assert!(Hosts::new(Vec::new()).is_none());
}

#[test]
fn what_policy_would_refuse_blocks_even_when_it_is_only_counted() {
    let mut refused = wrote("a");
    refused.would_succeed = false;
    refused.failure_reason = Some("outside the workspace".to_owned());
    let violation = Some(FailureCode::PolicyViolation);
    with_subject("", &[wrote("b"), refused], |subject| {
        let result = judge(&[Gate::violations()], &subject, &Runner::ending(0));
        assert!(result[0].blocked);
        assert_eq!(result[0].failure_code, violation);
        let reason = result[0].validations[0].reason.clone().unwrap();
        assert!(reason.contains("outside the workspace"), "{reason}");
    });
    with_subject("", &[wrote("b")], |subject| {
        assert_eq!(said(Check::NoViolations, &subject), None);
        let effect_count = EffectCount {
            total: 9,
            violations: 1,
            dropped: 8,
        };
        let subject = Subject {
            effect_count,
            ..subject
        };
        assert_eq!(said(Check::NoViolations, &subject), violation);
    });
}

#[test]
fn sizes_are_bounded_by_what_was_counted() {
    let artifact = [Artifact {
        path: bytes("out.bin"),
        size: 2048,
        hash: String::new(),
    }];
    let changes = ChangeCount {
        created: 1,
        modified: 1,
        removed: 1,
        bytes: 5000,
        truncated: false,
    };
    with_subject("12345", &[wrote("a")], |subject| {
        let subject = Subject {
            artifacts: &artifact,
            changes: Some(changes),
            ..subject
        };
        let of = |size: MaxSize, subject: &Subject<'_>| said(Check::MaxSize(size), subject);
        let none = MaxSize::default();
        for (size, expected) in [
            (
                MaxSize {
                    stdout: Some(Bytes(5)),
                    ..none
                },
                None,
            ),
            (
                MaxSize {
                    stdout: Some(Bytes(4)),
                    ..none
                },
                OUT,
            ),
            (
                MaxSize {
                    changed_files: Some(3),
                    ..none
                },
                None,
            ),
            (
                MaxSize {
                    changed_files: Some(2),
                    ..none
                },
                OUT,
            ),
            (
                MaxSize {
                    changed_bytes: Some(Bytes(5000)),
                    ..none
                },
                None,
            ),
            (
                MaxSize {
                    changed_bytes: Some(Bytes(4999)),
                    ..none
                },
                OUT,
            ),
            (
                MaxSize {
                    artifacts: Some(0),
                    ..none
                },
                OUT,
            ),
            (
                MaxSize {
                    artifact_bytes: Some(Bytes(2047)),
                    ..none
                },
                OUT,
            ),
            (
                MaxSize {
                    artifact_bytes: Some(Bytes(2048)),
                    ..none
                },
                None,
            ),
        ] {
            assert_eq!(of(size, &subject), expected, "{size:?}");
        }
        let changes = Some(ChangeCount {
            truncated: true,
            ..changes
        });
        let many = Subject { changes, ..subject };
        let size = MaxSize {
            changed_files: Some(u64::MAX),
            ..none
        };
        assert_eq!(of(size, &many), OUT);
    });
}

#[test]
fn a_diff_is_no_longer_than_people_read() {
    let text = effect(Deed::FilesystemWrite(write(
        "a",
        Some("@@ -1 +1,2 @@\n-x\n+y\n+z\n"),
    )));
    let binary = effect(Deed::FilesystemWrite(write("b", None)));
    let size = |files, lines| Check::DiffSize(DiffSize { files, lines });
    with_subject("", &[text, binary], |subject| {
        assert_eq!(said(size(None, Some(2)), &subject), OUT);
        assert_eq!(said(size(Some(1), None), &subject), OUT);
        assert_eq!(said(size(Some(2), None), &subject), None);
        let unsure = one(size(None, Some(3)), &subject);
        assert_eq!(unsure.failure_code, Some(FailureCode::MissingData));
        let half = Confidence::new(0.5).unwrap();
        assert_eq!(unsure.validations[0].confidence, half);
        let enough = gate(size(None, Some(3))).requiring(half);
        assert!(judge(&[enough], &subject, &Runner::ending(0))[0].passed());
    });
}

#[test]
fn lines_of_a_file_that_is_too_large_for_a_diff_are_counted_from_the_first_change_to_the_last() {
    let mut modified = write("a", None);
    modified.before = Some(facts("file", 8));
    modified.after = Some(facts("file", 8));
    let effects = [effect(Deed::FilesystemWrite(modified))];
    let path = bytes("a");
    let (old, new) = (Content::Before(&path), Content::After(&path));
    for (before, after, changed) in [
        ("1\n2\n3\n4\n", "1\nb\n3\n4\n", Some(2)),
        ("1\n2\n3\n4\n", "a\n2\n3\nd\n", Some(8)),
        ("1\n1\n1\n1\n", "1\n1\n1\n1\n1\n", Some(1)),
        ("1\n2\n3\n4\n", "1\n2\n3\r\n4", Some(4)),
        ("1\n2\n3\n4\n", "1\n\0\n3\n4\n", None),
    ] {
        let read = [(old, before.as_bytes()), (new, after.as_bytes())];
        with_subject("", &effects, |subject| {
            let of = |lines| {
                let size = DiffSize {
                    files: None,
                    lines: Some(lines),
                };
                let subject = Subject {
                    contents: &Files(&read),
                    ..subject.clone()
                };
                said(Check::DiffSize(size), &subject)
            };
            match changed {
                Some(changed) => {
                    assert_eq!(of(changed), None, "{after:?}");
                    assert_eq!(of(changed - 1), OUT, "{after:?}");
                }
                None => assert_eq!(of(100), Some(FailureCode::MissingData)),
            }
        });
    }
}

#[test]
fn a_name_with_a_line_break_does_not_make_a_line_of_a_reason() {
    let forged = [wrote("c\nnote: gate `s` passed")];
    let result = with_subject("", &forged, |it| one(scope(&["src/**"], &[]), &it));
    let reason = result.validations[0].reason.clone().unwrap();
    assert!(reason.contains("`c\\nnote"), "{reason}");
}

fn spawned(pid: u32, program: &str) -> Effect {
    effect(Deed::ProcessSpawn(ProcessSpawn {
        pid,
        parent: 1,
        program: bytes(program),
        argv: vec![bytes(program)],
        argv_truncated: false,
        cwd: None,
    }))
}

#[test]
fn the_same_deeds_have_the_same_digest_and_others_another() {
    let mut later = wrote("a");
    (later.seq, later.at) = (7, jiff::Timestamp::MAX);
    let same = [spawned(9, "/bin/ls"), later];
    let first = [wrote("a"), spawned(4, "/bin/ls")];
    assert_eq!(digest(&first), digest(&same));
    assert_ne!(digest(&first), digest(&first[..1]));
    assert_ne!(digest(&first), digest(&[wrote("b"), spawned(4, "/bin/ls")]));
    let mut refused = wrote("a");
    refused.would_succeed = false;
    assert_ne!(digest(&[wrote("a")]), digest(&[refused]));

    let check = || Check::Deterministic(Deterministic);
    with_subject("", &first, |subject| {
        let with = |digest| Subject {
            history: History {
                digest,
                ..History::default()
            },
            ..subject.clone()
        };
        let before = digest(&same);
        assert_eq!(said(check(), &with(Some(&before))), None);
        assert_eq!(
            said(check(), &with(Some("other"))),
            Some(FailureCode::NonDeterminism)
        );
        let alone = one(check(), &with(None));
        assert!(alone.passed());
        assert_eq!(alone.validations[0].confidence, Confidence::NONE);
    });
}

#[test]
fn a_command_agrees_only_by_ending_with_zero() {
    let command = || CommandCheck::new(vec!["pytest".to_owned(), "-q".to_owned()]).unwrap();
    let failed = Some(FailureCode::ToolError);
    let end = CommandOutcome {
        exit_code: Some(0),
        ..CommandOutcome::default()
    };
    for (outcome, expected) in [
        (end.clone(), None),
        (
            CommandOutcome {
                exit_code: Some(1),
                tail: "1 failed\x1b[0m".to_owned(),
                ..end.clone()
            },
            failed,
        ),
        (
            CommandOutcome {
                exit_code: None,
                ..end.clone()
            },
            failed,
        ),
        (
            CommandOutcome {
                timed_out: true,
                ..end.clone()
            },
            failed,
        ),
        (
            CommandOutcome {
                error: Some("memory limit".to_owned()),
                ..end
            },
            failed,
        ),
    ] {
        let runner = Runner {
            outcome,
            ..Runner::default()
        };
        let result = with_subject("", &[], |subject| {
            judge(&[gate(Check::Command(command()))], &subject, &runner)
        });
        assert_eq!(result[0].failure_code, expected, "{:?}", runner.outcome);
        let reason = result[0].validations[0].reason.clone().unwrap_or_default();
        assert!(!reason.contains('\x1b'), "{reason}");
        assert_eq!(
            reason.contains("1 failed"),
            runner.outcome.tail.contains("1 failed")
        );
    }
}

struct Broken;

impl RunCommand for Broken {
    fn run_command(&self, _: &CommandCheck) -> Result<CommandOutcome> {
        Err(Error::new(
            Code::Internal,
            Stage::Judge,
            "no sandbox could be made",
        ))
    }
}

#[test]
fn a_command_that_cannot_be_run_blocks() {
    let command = CommandCheck::new(vec!["pytest".to_owned()]).unwrap();
    let result = with_subject("", &[], |subject| {
        judge(&[gate(Check::Command(command))], &subject, &Broken)
    });
    assert!(result[0].blocked);
    let reason = result[0].validations[0].reason.clone().unwrap();
    assert!(reason.contains("no sandbox could be made"), "{reason}");
    for bad in [
        vec![],
        vec![String::new()],
        vec!["a\0b".to_owned()],
        vec!["a".to_owned(); 300],
    ] {
        assert!(CommandCheck::new(bad).is_err());
    }
}
