//! Checks of what was printed.

use glovebox_gate::{
    Check, Content, Expression, History, Monotonic, NoSecrets, NotNull, Pointer, Schema, Subject,
    judge,
};
use glovebox_model::{Artifact, Confidence, Deed, FailureCode, ProcessSpawn, Status};
use serde_json::{Value, json};

use crate::fixture::{
    Files, Runner, bytes, effect, facts, gate, one, said, with_subject, write, wrote,
};

fn pointer(text: &str) -> Pointer {
    Pointer::new(text).unwrap()
}

fn not_null(at: Option<&str>) -> Check {
    Check::NotNull(NotNull {
        at: at.map(pointer),
    })
}

#[test]
fn falsy_outputs_are_outputs() {
    for (stdout, at, expected) in [
        ("0", None, None),
        ("\"\"", None, None),
        ("false", None, None),
        ("plain text", None, None),
        ("[]", None, None),
        ("", None, Some(FailureCode::MissingData)),
        (" \n", None, Some(FailureCode::MissingData)),
        ("null\n", None, Some(FailureCode::MissingData)),
        ("{\"a\": 0}", Some("/a"), None),
        ("{\"a\": \"\"}", Some("/a"), None),
        ("{\"a\": false}", Some("/a"), None),
        ("{\"a\": null}", Some("/a"), Some(FailureCode::MissingData)),
        ("{}", Some("/a"), Some(FailureCode::MissingData)),
        ("not json", Some("/a"), Some(FailureCode::MissingData)),
        ("0", Some(""), None),
        ("false", Some(""), None),
    ] {
        let found = with_subject(stdout, &[], |subject| said(not_null(at), &subject));
        assert_eq!(found, expected, "{stdout:?} at {at:?}");
    }
}

#[test]
fn falsy_outputs_and_failed_runs_are_judged_by_every_other_check() {
    let schema = Check::Schema(Schema::new(pointer(""), &json!({"type": "string"})).unwrap());
    for stdout in ["0", "false", "null"] {
        let found = with_subject(stdout, &[], |subject| said(schema.clone(), &subject));
        assert_eq!(found, Some(FailureCode::Conflict), "{stdout}");
    }
    with_subject("\"\"", &[], |subject| {
        assert_eq!(said(schema.clone(), &subject), None)
    });
    with_subject("", &[], |subject| {
        let failed = Subject {
            status: Status::Failed,
            exit_code: Some(1),
            ..subject
        };
        assert_eq!(said(schema, &failed), Some(FailureCode::MissingData));
        assert_eq!(
            said(Check::Exit(Default::default()), &failed),
            Some(FailureCode::ToolError)
        );
    });
}

#[test]
fn an_exit_code_that_was_named_is_good_and_a_kill_never_is() {
    let some = Check::Exit(glovebox_gate::Exit {
        codes: [0, 1].into(),
    });
    with_subject("", &[], |subject| {
        for (status, code, expected) in [
            (Status::Succeeded, Some(0), None),
            (Status::Failed, Some(1), None),
            (Status::Failed, Some(2), Some(FailureCode::ToolError)),
            (Status::Killed, Some(1), Some(FailureCode::ToolError)),
            (Status::TimedOut, None, Some(FailureCode::ToolError)),
        ] {
            let subject = Subject {
                status,
                exit_code: code,
                ..subject.clone()
            };
            assert_eq!(said(some.clone(), &subject), expected, "{status} {code:?}");
        }
    });
}

#[test]
fn a_schema_says_where_the_output_does_not_fit_and_repeats_nothing_of_it() {
    let schema = json!({
        "type": "object",
        "required": ["version"],
        "properties": {"version": {"type": "integer"}, "name": {"maxLength": 3}},
    });
    let check = Check::Schema(Schema::new(pointer("/result"), &schema).unwrap());
    let of = |stdout: &str| with_subject(stdout, &[], |subject| one(check.clone(), &subject));
    assert!(of(r#"{"result": {"version": 1}}"#).passed());
    let wrong = of(r#"{"result": {"version": 1, "name": "private"}}"#);
    assert_eq!(wrong.failure_code, Some(FailureCode::Conflict));
    let reason = wrong.validations[0].reason.clone().unwrap();
    assert!(
        reason.contains("`/name`") && !reason.contains("private"),
        "{reason}"
    );
    assert_eq!(of("{}").failure_code, Some(FailureCode::MissingData));
    assert_eq!(of("[").failure_code, Some(FailureCode::MissingData));
}

#[test]
fn a_schema_that_is_none_or_reaches_out_is_refused() {
    let doubling = || {
        let next = |at: usize| json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let mut defs: serde_json::Map<String, Value> = (0..20)
            .map(|at| (format!("d{at}"), json!({"allOf": [next(at), next(at)]})))
            .collect();
        defs.insert("d20".to_owned(), json!({"minimum": 0}));
        json!({"$defs": defs, "$ref": "#/$defs/d0"})
    };
    for (schema, why) in [
        (json!({"type": "strng"}), "is not a JSON Schema"),
        (
            json!({"$ref": "https://example.com/s.json"}),
            "may refer only to itself",
        ),
        (
            json!({"$ref": "file:///etc/passwd"}),
            "may refer only to itself",
        ),
        (json!({"pattern": "(a"}), "is not a JSON Schema"),
        (json!({"pattern": "(?=a)"}), "is not a JSON Schema"),
        (json!({"format": "nonsense"}), "is not a JSON Schema"),
        (json!(true), "is not an object"),
        (json!({"description": "x".repeat(70_000)}), "is longer than"),
        (doubling(), "holds more than 32 references"),
    ] {
        let found = Schema::new(pointer(""), &schema).unwrap_err();
        assert!(found.contains(why), "{found}");
    }
    assert!(Schema::new(pointer(""), &json!({"$ref": "#"})).is_ok());
}

#[test]
fn a_version_never_goes_back() {
    let of = |now: Value, before: Option<Value>, strict: bool| {
        let stdout = json!({"version": now}).to_string();
        let before = before.map(|it| json!({"version": it}));
        with_subject(&stdout, &[], |subject| {
            let history = History {
                previous: before.as_ref(),
                ..History::default()
            };
            let at = pointer("/version");
            said(
                Check::Monotonic(Monotonic { at, strict }),
                &Subject { history, ..subject },
            )
        })
    };
    let conflict = Some(FailureCode::Conflict);
    assert_eq!(of(json!(2), Some(json!(1)), false), None);
    assert_eq!(of(json!(1), Some(json!(1)), false), None);
    assert_eq!(of(json!(1), Some(json!(1)), true), conflict);
    assert_eq!(of(json!(0), Some(json!(1)), false), conflict);
    assert_eq!(of(json!(0), None, true), None);
    assert_eq!(of(json!("1.10"), Some(json!("1.9")), true), None);
    assert_eq!(of(json!("1.9"), Some(json!("1.10")), false), conflict);
    assert_eq!(of(json!("new"), None, false), conflict);
    assert_eq!(of(json!("2"), Some(json!(1)), false), conflict);
    assert_eq!(
        of(Value::Null, Some(json!(1)), false),
        Some(FailureCode::MissingData)
    );
}

/// Joined here so that no scanner of this repository takes it for a real one.
fn key() -> String {
    ["AKIA", "ABCDEFGHIJKLMNOP"].concat()
}

#[test]
fn a_credential_is_found_in_output_files_and_requests_and_never_repeated() {
    let check = || Check::NoSecrets(NoSecrets::default());
    let diff = |line: &str| format!("@@ -1 +1 @@\n{line}\n");
    let file = |line: &str| {
        let write = write("config.py", Some(&diff(line)));
        effect(glovebox_model::Deed::FilesystemWrite(write))
    };
    let mut asked = crate::fixture::request("x.org", 443);
    if let glovebox_model::Deed::NetworkRequest(it) = &mut asked.deed {
        it.path = Some(format!("/k/{}", key()));
    }
    let added = file(&format!("+key = '{}'", key()));
    let sly = file(&format!("+++ {}", key()));
    let removed = file(&format!("-key = '{}'", key()));
    for (stdout, effects, found) in [
        (format!("ok\nkey {}\n", key()), vec![], true),
        ("value [secret db]".to_owned(), vec![], true),
        (String::new(), vec![added], true),
        (String::new(), vec![sly], true),
        (String::new(), vec![asked], true),
        (String::new(), vec![wrote(&format!("{}.txt", key()))], true),
        (String::new(), vec![removed], false),
        ("all good".to_owned(), vec![wrote("a")], false),
    ] {
        let result = with_subject(&stdout, &effects, |subject| one(check(), &subject));
        assert_eq!(!result.passed(), found, "{stdout} {effects:?}");
        let text = serde_json::to_string(&result).unwrap();
        assert!(!text.contains(&key()), "{text}");
        if found {
            assert_eq!(result.failure_code, Some(FailureCode::PolicyViolation));
        }
    }
}

#[test]
fn what_was_not_looked_through_lowers_the_confidence() {
    let check = || Check::NoSecrets(NoSecrets::default());
    let binary = effect(glovebox_model::Deed::FilesystemWrite(write("a.bin", None)));
    let result = with_subject("0123456789", std::slice::from_ref(&binary), |subject| {
        one(check(), &subject)
    });
    assert_eq!(result.failure_code, Some(FailureCode::MissingData));
    assert_eq!(
        result.validations[0].confidence,
        Confidence::new(0.5).unwrap()
    );
    let result = with_subject("01234", &[], |subject| {
        let subject = Subject {
            stdout_bytes: 50,
            ..subject
        };
        one(check(), &subject)
    });
    assert_eq!(
        result.validations[0].confidence,
        Confidence::new(0.1).unwrap()
    );
}

#[test]
fn how_much_must_be_looked_through_is_said_by_the_gate_and_is_otherwise_everything() {
    let binary = effect(glovebox_model::Deed::FilesystemWrite(write("a.bin", None)));
    let of = |required: Option<f64>| {
        let mut judging = gate(Check::NoSecrets(NoSecrets::default()));
        if let Some(required) = required {
            judging = judging.requiring(Confidence::new(required).unwrap());
        }
        let effects = std::slice::from_ref(&binary);
        with_subject("0123456789", effects, |subject| {
            judge(&[judging], &subject, &Runner::ending(0))[0].failure_code
        })
    };
    assert_eq!(of(None), Some(FailureCode::MissingData));
    assert_eq!(of(Some(0.0)), None);
    assert_eq!(of(Some(0.5)), None);
    assert_eq!(of(Some(0.6)), Some(FailureCode::LowConfidence));
}

/// A file, a link, an artifact, a stream and an argument are all looked through, whatever they are.
#[test]
fn a_credential_is_found_wherever_bytes_are_kept() {
    let key = key();
    let binary = format!("\0{key}\x01\n");
    let path = bytes("a");
    let new = |before| {
        let mut it = write("a", None);
        it.before = before;
        effect(Deed::FilesystemWrite(it))
    };
    let mut link = write("a", None);
    link.after = Some(facts("symlink", 0));
    link.after.as_mut().unwrap().target = Some(bytes(&format!("/x/{key}")));
    let spawn = effect(Deed::ProcessSpawn(ProcessSpawn {
        pid: 2,
        parent: 1,
        program: bytes("curl"),
        argv: vec![bytes("curl"), bytes(&format!("-ukey:{key}"))],
        argv_truncated: false,
        cwd: None,
    }));
    let artifact = [Artifact {
        path: path.clone(),
        size: 3,
        hash: String::new(),
    }];
    let (old, now) = (Content::Before(&path), Content::After(&path));
    let (good, bad) = (&b"\0ok"[..], binary.as_bytes());
    let violation = Some(FailureCode::PolicyViolation);
    let missing = Some(FailureCode::MissingData);
    for (effects, stderr, artifacts, files, expected) in [
        (vec![new(None)], 0, &[][..], &[(now, bad)][..], violation),
        (
            vec![new(Some(facts("file", 9)))],
            0,
            &[],
            &[(now, bad), (old, bad)],
            None,
        ),
        (
            vec![effect(Deed::FilesystemWrite(link))],
            0,
            &[],
            &[],
            violation,
        ),
        (vec![spawn], 0, &[], &[], violation),
        (vec![], 3, &[], &[(Content::Stderr, bad)], violation),
        (vec![], 3, &[], &[(Content::Stderr, good)], None),
        (vec![], 3, &[], &[], missing),
        (
            vec![],
            0,
            &artifact,
            &[(Content::Artifact(&path), bad)],
            violation,
        ),
        (
            vec![],
            0,
            &artifact,
            &[(Content::Artifact(&path), good)],
            None,
        ),
        (vec![], 0, &artifact, &[], missing),
    ] {
        let result = with_subject("", &effects, |subject| {
            let subject = Subject {
                stderr_bytes: stderr,
                artifacts,
                contents: &Files(files),
                ..subject
            };
            one(Check::NoSecrets(NoSecrets::default()), &subject)
        });
        assert_eq!(result.failure_code, expected, "{effects:?} {files:?}");
        let text = serde_json::to_string(&result).unwrap();
        assert!(!text.contains(&key), "{text}");
    }
}

#[test]
fn output_that_the_record_cuts_is_read_from_its_file() {
    let hidden = format!("0{}{}9", "-\n".repeat(20), key());
    for (file, expected) in [
        (hidden.as_str(), Some(FailureCode::PolicyViolation)),
        (&"-\n".repeat(31), None),
        (&"-\n".repeat(30), Some(FailureCode::MissingData)),
    ] {
        let found = with_subject("0\n… 60 bytes omitted …\n9", &[], |subject| {
            let subject = Subject {
                stdout_here: 2,
                stdout_bytes: 62,
                contents: &Files(&[(Content::Stdout, file.as_bytes())]),
                ..subject
            };
            said(Check::NoSecrets(NoSecrets::default()), &subject)
        });
        assert_eq!(found, expected, "{file}");
    }
}

#[test]
fn a_marker_does_not_count_as_the_output_that_it_stands_for() {
    with_subject("01\n… 16 bytes omitted …\n89", &[], |subject| {
        let cut = Subject {
            stdout_here: 4,
            stdout_bytes: 20,
            ..subject
        };
        let expression = Expression::new("!stdout.contains('secret')").unwrap();
        let found = said(Check::Cel(expression), &cut);
        assert_eq!(found, Some(FailureCode::MissingData));
        let looked = one(Check::NoSecrets(NoSecrets::default()), &cut);
        assert_eq!(
            looked.validations[0].confidence,
            Confidence::new(0.2).unwrap()
        );
    });
}

#[test]
fn an_expression_sees_the_whole_subject() {
    let effects = [wrote("src/a.py"), crate::fixture::request("x.org", 443)];
    for (text, expected) in [
        ("effects.size() < 10 && exit_code == 0", None),
        (
            "effects.all(e, e.kind != 'network_request' || e.host == 'x.org')",
            None,
        ),
        ("effects.exists(e, e.path.startsWith('src/'))", None),
        ("effects.size() > 2", Some(FailureCode::PolicyViolation)),
        ("output.version >= 2 && output.items[0] == 'a'", None),
        ("output.nothing == 1", Some(FailureCode::ToolError)),
        ("output.version", Some(FailureCode::ToolError)),
        (
            "status == 'succeeded' && mode == 'transactional' && argv[0] == 'prog'",
            None,
        ),
        (
            "stdout.contains('version') && space == 'local' && agent == ''",
            None,
        ),
        (
            "violations == 0 && changed_files == 1 && duration_ms == 100",
            None,
        ),
    ] {
        let check = Check::Cel(Expression::new(text).unwrap());
        let stdout = r#"{"version": 2, "items": ["a"]}"#;
        let found = with_subject(stdout, &effects, |subject| said(check, &subject));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn an_expression_is_not_evaluated_on_more_than_it_can_bear() {
    let effects: Vec<_> = (0..500).map(|at| wrote(&format!("f{at}"))).collect();
    let of = |text: &str, effects: &[_]| {
        let check = Check::Cel(Expression::new(text).unwrap());
        with_subject("x", effects, |subject| said(check, &subject))
    };
    let twice = "effects.all(a, effects.all(b, true))";
    assert_eq!(of(twice, &effects), Some(FailureCode::MissingData));
    assert_eq!(of(twice, &effects[..100]), None);
    assert_eq!(of("effects.all(a, a.would_succeed)", &effects), None);
    let long = "a".repeat(300 << 10);
    with_subject(&long, &[], |subject| {
        let of = |text| said(Check::Cel(Expression::new(text).unwrap()), &subject);
        assert_eq!(of("stdout.contains('b')"), Some(FailureCode::MissingData));
        assert_eq!(of("stdout_bytes > 1"), None);
    });
}
