//! Manifests that are not right: each is refused with its place, and nothing of it is used.

use std::fs;
use std::os::unix::fs::symlink;

use glovebox_skill::{Catalogue, Settings, check};
use serde_json::{Value, json};

use crate::manifest;

/// What is put in the place of what stands at the pointer, and the place and words of the refusal.
/// `null` takes it out.
fn wrong() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let long = "x".repeat(5000);
    let deep = (0..40).fold(
        json!({"type": "string"}),
        |it, _| json!({"properties": {"a": it}}),
    );
    let many: Vec<Value> = (0..40).map(|_| json!({"$ref": "#/$defs/a"})).collect();
    let words: Vec<String> = (0..65).map(|it| it.to_string()).collect();
    vec![
        ("/schema_version", Value::Null, "", "required"),
        (
            "/schema_version",
            json!("2.0"),
            "/schema_version",
            "expected",
        ),
        ("/schema_version", json!(1.0), "/schema_version", "expected"),
        ("/id", Value::Null, "", "required"),
        ("/id", json!("noDots"), "/id", "match"),
        ("/id", json!("a"), "/id", "match"),
        ("/id", json!("A.b"), "/id", "match"),
        ("/id", json!("a..b"), "/id", "match"),
        ("/id", json!("../a.b"), "/id", "match"),
        ("/id", json!("a.b\n"), "/id", "match"),
        ("/id", json!("a/b.c"), "/id", "match"),
        ("/id", json!("c.d"), "/id", "directory"),
        ("/id", json!(7), "/id", "type"),
        ("/name", json!(""), "/name", "shorter"),
        ("/name", json!(["x"]), "/name", "type"),
        ("/description", json!(long), "/description", "longer"),
        ("/version", json!("1.0"), "/version", "match"),
        ("/version", json!("01.2.3"), "/version", "match"),
        ("/version", json!("latest"), "/version", "match"),
        ("/version", json!("1.2.3; rm -rf /"), "/version", "match"),
        ("/extra", json!(true), "/extra", "not a key"),
        ("/runtime", Value::Null, "", "required"),
        ("/runtime/kind", json!("host"), "/runtime/kind", "one of"),
        ("/runtime/kind", json!("wasm"), "/runtime/kind", "one of"),
        ("/runtime/kind", json!("docker"), "/runtime", "required"),
        (
            "/runtime/image",
            json!("--privileged x"),
            "/runtime/image",
            "match",
        ),
        (
            "/runtime/image",
            json!("a b; id"),
            "/runtime/image",
            "match",
        ),
        (
            "/runtime/privileged",
            json!(true),
            "/runtime/privileged",
            "not a key",
        ),
        (
            "/runtime/entrypoint",
            json!([]),
            "/runtime/entrypoint",
            "less than 1 item",
        ),
        (
            "/runtime/entrypoint",
            json!("bash -c x"),
            "/runtime/entrypoint",
            "type",
        ),
        (
            "/runtime/entrypoint",
            json!(words),
            "/runtime/entrypoint",
            "more than 64 items",
        ),
        (
            "/runtime/entrypoint",
            json!(["echo", 1]),
            "/runtime/entrypoint/1",
            "type",
        ),
        (
            "/runtime/entrypoint",
            json!(["echo", ""]),
            "/runtime/entrypoint/1",
            "shorter",
        ),
        (
            "/runtime/entrypoint",
            json!(["echo", "a\0b"]),
            "/runtime/entrypoint/1",
            "NUL",
        ),
        (
            "/runtime/entrypoint",
            json!(["{input.text}"]),
            "/runtime/entrypoint/0",
            "which program",
        ),
        (
            "/runtime/entrypoint",
            json!(["-x"]),
            "/runtime/entrypoint/0",
            "no program",
        ),
        (
            "/runtime/entrypoint",
            json!(["sh", "-c", "echo {input.text}"]),
            "/runtime/entrypoint/2",
            "whole word",
        ),
        (
            "/runtime/entrypoint",
            json!(["echo", "--a={input.text}"]),
            "/runtime/entrypoint/1",
            "whole word",
        ),
        (
            "/runtime/entrypoint",
            json!(["echo", "{input.none}"]),
            "/runtime/entrypoint/1",
            "not among",
        ),
        (
            "/runtime/entrypoint",
            json!(["echo", "{input.thing}"]),
            "/runtime/entrypoint/1",
            "cannot be a word",
        ),
        (
            "/runtime/entrypoint",
            json!(["echo", "{input.}"]),
            "/runtime/entrypoint/1",
            "names no input",
        ),
        (
            "/runtime/entrypoint",
            json!(["sh", "{skill}/../../x"]),
            "/runtime/entrypoint/1",
            "no file",
        ),
        (
            "/runtime/entrypoint",
            json!(["sh", "{skill}/run.sh"]),
            "/runtime/entrypoint/1",
            "no file `run.sh`",
        ),
        (
            "/runtime/entrypoint",
            json!(["sh", "{script}"]),
            "/runtime/entrypoint/1",
            "first word",
        ),
        (
            "/runtime/entrypoint",
            json!(["{script}"]),
            "/runtime/entrypoint/0",
            "enum",
        ),
        ("/interface", json!({}), "/interface", "required"),
        (
            "/interface/inputs",
            json!({"type": "string"}),
            "/interface/inputs/type",
            "expected",
        ),
        (
            "/interface/inputs",
            json!(true),
            "/interface/inputs",
            "type",
        ),
        (
            "/interface/inputs/$ref",
            json!("file:///etc/passwd"),
            "/interface/inputs",
            "refers to",
        ),
        (
            "/interface/inputs/$ref",
            json!("http://169.254.169.254/x"),
            "/interface/inputs",
            "refers to",
        ),
        (
            "/interface/inputs/$ref",
            json!("#"),
            "/interface/inputs",
            "refers to",
        ),
        (
            "/interface/inputs/$id",
            json!("http://example.com"),
            "/interface/inputs",
            "$id",
        ),
        (
            "/interface/inputs/$schema",
            json!("http://example.com/none"),
            "/interface/inputs",
            "not a JSON Schema",
        ),
        (
            "/interface/inputs/properties/text/pattern",
            json!("("),
            "/interface/inputs",
            "not a JSON Schema",
        ),
        (
            "/interface/inputs/properties/text/pattern",
            json!("(a{1000}){1000}"),
            "/interface/inputs",
            "not a JSON Schema",
        ),
        (
            "/interface/inputs/properties/text/type",
            json!("txt"),
            "/interface/inputs/properties/text/type",
            "not a JSON Schema",
        ),
        (
            "/interface/outputs",
            json!({"allOf": many, "$defs": {"a": {}}}),
            "/interface/outputs",
            "references",
        ),
        (
            "/interface/outputs",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}),
            "/interface/outputs",
            "circle",
        ),
        ("/interface/outputs", deep, "/interface/outputs", "deeper"),
        (
            "/interface/outputs",
            json!({"description": "x".repeat(70_000)}),
            "/interface/outputs",
            "longer",
        ),
        (
            "/permissions/net/mode",
            json!("unrestricted"),
            "/permissions/net/mode",
            "expected",
        ),
        (
            "/permissions/net/mode",
            json!("allowlist"),
            "/permissions/net/mode",
            "expected",
        ),
        ("/permissions/net", Value::Null, "/permissions", "required"),
        (
            "/permissions/net/hosts",
            json!(["example.com"]),
            "/permissions/net/hosts",
            "not a key",
        ),
        (
            "/permissions/fs/read",
            json!(["/etc/**"]),
            "/permissions/fs/read/0",
            "one of",
        ),
        (
            "/permissions/fs/read",
            json!(["work/../../etc/**"]),
            "/permissions/fs/read/0",
            "one of",
        ),
        (
            "/permissions/fs/read",
            json!(["**"]),
            "/permissions/fs/read/0",
            "one of",
        ),
        (
            "/permissions/fs/write",
            json!(["inputs/**"]),
            "/permissions/fs/write/0",
            "one of",
        ),
        (
            "/permissions/fs/write",
            json!(["work/../**"]),
            "/permissions/fs/write/0",
            "one of",
        ),
        (
            "/permissions/fs/write",
            json!(["work/**", "work/**"]),
            "/permissions/fs/write",
            "unique",
        ),
        (
            "/permissions/fs/write",
            json!("work/**"),
            "/permissions/fs/write",
            "type",
        ),
        (
            "/permissions/secrets",
            json!(["*"]),
            "/permissions/secrets",
            "not a key",
        ),
        (
            "/limits/timeout_ms",
            json!(999),
            "/limits/timeout_ms",
            "minimum",
        ),
        (
            "/limits/timeout_ms",
            json!("60s"),
            "/limits/timeout_ms",
            "type",
        ),
        (
            "/limits/timeout_ms",
            json!(1e300),
            "/limits/timeout_ms",
            "maximum",
        ),
        (
            "/limits/memory_mb",
            json!(0),
            "/limits/memory_mb",
            "minimum",
        ),
        (
            "/limits/memory_mb",
            json!(-1),
            "/limits/memory_mb",
            "minimum",
        ),
        (
            "/limits/cpu_cores",
            json!(0.05),
            "/limits/cpu_cores",
            "minimum",
        ),
        ("/limits/pids", json!(1.5), "/limits/pids", "type"),
        ("/limits/pids", json!(u64::MAX), "/limits/pids", "maximum"),
        (
            "/limits/max_stdout_bytes",
            Value::Null,
            "/limits",
            "required",
        ),
        ("/limits/nice", json!(1), "/limits/nice", "not a key"),
        ("/examples", json!([{}]), "/examples/0", "required"),
        (
            "/examples",
            json!([{"inputs": {"text": 1}}]),
            "/examples/0/inputs/text",
            "type",
        ),
        (
            "/examples",
            json!([{"inputs": {"text": "a"}, "output": 1}]),
            "/examples/0/output",
            "type",
        ),
    ]
}

fn put(manifest: &mut Value, pointer: &str, value: Value) {
    let (above, key) = pointer.rsplit_once('/').unwrap();
    let above = manifest
        .pointer_mut(above)
        .unwrap()
        .as_object_mut()
        .unwrap();
    match value {
        Value::Null => {
            above.remove(key);
        }
        value => {
            above.insert(key.to_owned(), value);
        }
    }
}

#[test]
fn a_manifest_that_is_not_right_is_refused_with_the_place_of_what_is_wrong() {
    let cases = wrong();
    assert!(cases.len() >= 80, "{}", cases.len());
    for (pointer, value, place, words) in cases {
        let root = tempfile::tempdir().unwrap();
        let mut broken = manifest("a.b");
        put(&mut broken, pointer, value.clone());
        crate::write(root.path(), "a.b", &broken);
        let problems = check(&root.path().join("a.b")).unwrap_err();
        let found = problems
            .list()
            .iter()
            .any(|it| it.pointer.as_deref() == Some(place) && it.message.contains(words));
        let shown: String = value.to_string().chars().take(80).collect();
        assert!(found, "{pointer} = {shown}: {:?}", problems.list());

        let catalogue = Catalogue::new(Settings {
            dir: Some(root.path().to_owned()),
            ..Settings::default()
        });
        let listing = catalogue.list().unwrap();
        assert!(
            listing.skills.iter().all(|it| it.id() != "a.b"),
            "{pointer}"
        );
        assert_eq!(listing.invalid.len(), 1, "{pointer}");
        assert_eq!(listing.invalid[0].dir, "a.b");
        let error = catalogue.find("a.b").unwrap_err();
        assert_eq!(error.code, glovebox_model::Code::InvalidManifest, "{error}");
    }
}

#[test]
fn a_text_that_is_no_manifest_is_refused_with_its_line() {
    let doubled = manifest("a.b")
        .to_string()
        .replacen('{', "{\"id\": \"x.y\",\n", 1);
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(300 << 10));
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for (text, words) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "type"),
        ("null", "type"),
        ("\"a.b\"", "type"),
        ("{} trailing", "trailing"),
        ("{\"a\": NaN}", "expected"),
        ("// comment\n{}", "expected"),
        ("{\"a\": 1e999}", "out of range"),
        (doubled.as_str(), "given twice"),
        (large.as_str(), "larger than"),
        (deep.as_str(), "recursion"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a.b");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("manifest.json"), text).unwrap();
        let problems = check(&dir).unwrap_err();
        let shown: String = text.chars().take(40).collect();
        let said = format!("{:?}", problems.list());
        assert!(said.contains(words), "{shown}: {said}");
    }
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("a.b");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("manifest.json"), b"{\"a\": \"\xff\"}").unwrap();
    assert!(format!("{:?}", check(&dir).unwrap_err()).contains("not UTF-8"));
}

#[test]
fn everything_that_is_wrong_is_told_at_once_each_with_its_line() {
    let root = tempfile::tempdir().unwrap();
    let mut broken = manifest("a.b");
    put(&mut broken, "/name", json!(""));
    put(&mut broken, "/limits/pids", json!(0));
    put(&mut broken, "/runtime/kind", json!("host"));
    // What the schema of manifests cannot say is not kept for later.
    put(&mut broken, "/id", json!("c.d"));
    put(&mut broken, "/runtime/nope", json!(true));
    put(
        &mut broken,
        "/interface/inputs/properties",
        json!({"a": {"type": "strng"}}),
    );
    put(
        &mut broken,
        "/runtime/entrypoint",
        json!(["python3", "{skill}/gone.py", "{input.nope}"]),
    );
    crate::write(root.path(), "a.b", &broken);
    let file = root.path().join("a.b/manifest.json");
    fs::write(&file, serde_json::to_string_pretty(&broken).unwrap()).unwrap();
    let problems = check(&root.path().join("a.b")).unwrap_err();
    assert_eq!(problems.list().len(), 8, "{:?}", problems.list());
    let text = fs::read_to_string(&file).unwrap();
    for (pointer, line) in [
        ("/name", "\"name\""),
        ("/limits/pids", "\"pids\""),
        ("/id", "\"id\""),
        ("/runtime/nope", "\"nope\""),
        ("/interface/inputs/properties/a/type", "strng"),
        ("/runtime/entrypoint/1", "gone.py"),
        ("/runtime/entrypoint/2", "{input.nope}"),
    ] {
        let problem = problems
            .list()
            .iter()
            .find(|it| it.pointer.as_deref() == Some(pointer));
        let there = text.lines().position(|it| it.contains(line)).unwrap() + 1;
        assert_eq!(problem.unwrap().line, Some(there), "{pointer}");
    }
}

#[test]
fn only_regular_files_of_the_directory_itself_are_read() {
    type Trick = fn(&std::path::Path);
    let outside = tempfile::tempdir().unwrap();
    crate::write(outside.path(), "a.b", &manifest("a.b"));
    let right = outside.path().join("a.b");
    let tricks: [(&str, Trick, &str); 6] = [
        (
            "a link as manifest",
            |dir| {
                fs::rename(dir.join("manifest.json"), dir.join("m")).unwrap();
                symlink("m", dir.join("manifest.json")).unwrap();
            },
            "link",
        ),
        (
            "a link to outside",
            |dir| symlink("/etc/passwd", dir.join("passwd")).unwrap(),
            "link",
        ),
        (
            "a link to a directory",
            |dir| symlink("/etc", dir.join("etc")).unwrap(),
            "link",
        ),
        (
            "a fifo as manifest",
            |dir| {
                fs::remove_file(dir.join("manifest.json")).unwrap();
                let kind = rustix::fs::FileType::Fifo;
                let mode = rustix::fs::Mode::from_raw_mode(0o644);
                let at = rustix::fs::CWD;
                rustix::fs::mknodat(at, dir.join("manifest.json"), kind, mode, 0).unwrap();
            },
            "fifo",
        ),
        (
            "a large file",
            |dir| {
                let file = fs::File::create(dir.join("large")).unwrap();
                file.set_len(5 << 20).unwrap();
            },
            "larger",
        ),
        (
            "many files",
            |dir| {
                (0..501).for_each(|it| fs::write(dir.join(it.to_string()), "").unwrap());
            },
            "more than 500",
        ),
    ];
    for (name, trick, words) in tricks {
        let root = tempfile::tempdir().unwrap();
        crate::write(root.path(), "a.b", &manifest("a.b"));
        trick(&root.path().join("a.b"));
        let said = format!("{:?}", check(&root.path().join("a.b")).unwrap_err());
        assert!(said.contains(words), "{name}: {said}");
    }
    // A skill that is a link is none.
    let root = tempfile::tempdir().unwrap();
    symlink(&right, root.path().join("a.b")).unwrap();
    let catalogue = Catalogue::new(Settings {
        dir: Some(root.path().to_owned()),
        ..Settings::default()
    });
    let listing = catalogue.list().unwrap();
    assert!(
        listing.invalid[0].error.message.contains("link"),
        "{:?}",
        listing.invalid
    );
    assert!(catalogue.find("a.b").is_err());
    let missing = catalogue.find("../a.b").unwrap_err();
    assert_eq!(missing.code, glovebox_model::Code::NotFound);
}
