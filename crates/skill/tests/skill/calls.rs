//! What a call becomes, and what is refused before anything starts.

use glovebox_model::{Access, Bytes, Code, Millis, NetworkMode, Program};
use glovebox_skill::{Called, Catalogue, Settings, Skill, check};
use serde_json::{Map, Value, json};

use crate::manifest;

fn skill(manifest: &Value, files: &[(&str, &str)]) -> Skill {
    let root = tempfile::tempdir().unwrap();
    crate::write(root.path(), "a.b", manifest);
    for (name, text) in files {
        std::fs::write(root.path().join("a.b").join(name), text).unwrap();
    }
    check(&root.path().join("a.b")).unwrap_or_else(|it| panic!("{:?}", it.list()))
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn argv(called: &Called) -> Vec<String> {
    called
        .program
        .argv()
        .iter()
        .map(|it| it.display())
        .collect()
}

#[test]
fn an_input_that_does_not_fit_is_refused_with_everything_that_is_wrong() {
    let skill = skill(&manifest("a.b"), &[]);
    let error = skill
        .call(&object(json!({"text": 1, "more": "a secret"})))
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
    let said = format!("{} {:?}", error.message, error.hints);
    assert!(said.contains("`/text`") && said.contains("more"), "{said}");
    assert!(!said.contains("a secret"), "{said}");
    assert!(skill.call(&Map::new()).is_err());
    let nul = skill.call(&object(json!({"text": "a\0b"}))).unwrap_err();
    assert_eq!(nul.code, Code::InvalidInput, "{nul}");
    let long = skill
        .call(&object(json!({"text": "x".repeat(140_000)})))
        .unwrap_err();
    assert_eq!(long.code, Code::InvalidInput, "{long}");
}

#[test]
fn what_an_input_holds_is_never_read_again() {
    let mut manifest = manifest("a.b");
    manifest["runtime"]["entrypoint"] =
        json!(["echo", "{input.text}", "{input.words}", "{skill}/run.py"]);
    let skill = skill(&manifest, &[("run.py", "")]);
    let hostile = "{input.other} $(id) `id` ; {skill}/run.py {script} \n--help";
    let inputs = json!({"text": hostile, "other": "never", "words": ["{input.other}", "-x"]});
    let called = skill.call(&object(inputs)).unwrap();
    let words = argv(&called);
    assert_eq!(words[..4], ["echo", hostile, "{input.other}", "-x"]);
    let directory = skill.reference().directory();
    assert_eq!(words[4], format!("/workspace/inputs/{directory}/run.py"));
    assert_eq!(called.inputs.len(), 1);
    assert_eq!(
        called.inputs[0].path.display(),
        format!("{directory}/run.py")
    );
    let input: Value = serde_json::from_str(&called.skill.input).unwrap();
    assert_eq!(input["count"], 3, "defaults are filled in");
}

#[test]
fn permissions_and_limits_are_a_layer_of_policy() {
    let of = |read: &[&str], write: &[&str]| {
        let mut manifest = manifest("a.b");
        manifest["permissions"]["fs"] = json!({"read": read, "write": write});
        manifest["limits"]["max_artifacts_bytes_total"] = json!(77);
        let called = skill(&manifest, &[])
            .call(&object(json!({"text": "x"})))
            .unwrap();
        called.skill.profile
    };
    let profile = of(&["work/**"], &["work/**", "artifacts/**"]);
    assert_eq!(profile.workspace, Some(Access::Rw));
    assert_eq!(profile.network, Some(NetworkMode::None));
    assert_eq!(profile.backend, None);
    assert_eq!(profile.limits.wall_ms, Some(Millis(1000)));
    assert_eq!(profile.limits.memory_bytes, Some(Bytes(64 << 20)));
    assert_eq!(profile.limits.artifacts_bytes, Some(Bytes(77)));
    assert_eq!(of(&["work/**"], &[]).workspace, Some(Access::Ro));
    assert_eq!(of(&["inputs/**"], &[]).workspace, Some(Access::None));
    assert_eq!(of(&[], &[]).limits.artifacts_bytes, Some(Bytes(0)));
    let mut docker = manifest("a.b");
    docker["runtime"]["kind"] = json!("docker");
    docker["runtime"]["image"] = json!("debian:12");
    let called = skill(&docker, &[])
        .call(&object(json!({"text": "x"})))
        .unwrap();
    assert_eq!(called.skill.profile.image.as_deref(), Some("debian:12"));
    assert_eq!(
        called.skill.profile.backend,
        Some(glovebox_model::BackendName::Docker)
    );
}

#[test]
fn the_shipped_ones_run_code_as_code_and_refuse_what_leads_out() {
    let catalogue = Catalogue::new(Settings::default());
    let call = |id: &str, inputs: Value| catalogue.find(id).unwrap().call(&object(inputs));
    let shell = call("shell.run", json!({"script": "ls"})).unwrap();
    assert!(matches!(shell.program, Program::Shell { .. }));
    let python = call("python.run", json!({"code": "1"})).unwrap();
    assert!(matches!(python.program, Program::Python { .. }));
    let file = call("python.run", json!({"script_path": "a/b.py"})).unwrap();
    assert_eq!(argv(&file), ["python3", "a/b.py"]);
    for (id, inputs) in [
        ("shell.run", json!({})),
        ("shell.run", json!({"script": ""})),
        ("python.run", json!({})),
        ("python.run", json!({"code": "1", "script_path": "a.py"})),
        ("python.run", json!({"script_path": "../a.py"})),
        ("python.run", json!({"script_path": "a/../../b.py"})),
        ("python.run", json!({"script_path": "/etc/passwd"})),
        ("python.run", json!({"script_path": "-c"})),
        ("python.run", json!({"script_path": ".hidden"})),
        ("javascript.run", json!({"script_path": "--eval=1"})),
        ("git.diff", json!({"base": "--output=/etc/x; id"})),
        ("data.query", json!({"database": "a.db"})),
        ("text.search", json!({"pattern": ""})),
        ("json.query", json!({"query": "a"})),
    ] {
        let error = call(id, inputs.clone()).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput, "{id} {inputs}");
    }
}
