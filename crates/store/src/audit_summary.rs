//! What is remembered of an exec: the words it is found by, where it comes from, what it did to the
//! state of things, and what gates said. Pure, from the record alone: names, counts and digests,
//! never contents. Paths, hosts and reasons stay in the record.

use std::collections::BTreeMap;

use glovebox_model::{
    Agreed, Deed, Effect, Exec, FileFacts, GateResult, GateStatus, Mode, NetworkMode, Status, Tier,
};
use serde_json::{Map, Value, json};

use crate::hex;
use crate::ledger::encoding::{canonical, sha256};

/// Something of that name was asked for, and this is how it ended.
const TOOL_INVOCATION: &str = "tool_invocation";
/// It ran, in a sandbox.
const SANDBOX_EXECUTION: &str = "sandbox_execution";
pub(crate) const SIMULATION_MODE: &str = "simulation_mode";
pub(crate) const LIVE_EXECUTION: &str = "live_execution";
pub(crate) const TRANSACTIONAL: &str = "transactional";
/// Nothing ran; the answer was given beforehand.
pub(crate) const MOCK: &str = "mock";

/// Gates that are named one by one; all are counted.
const GATES_NAMED: usize = 64;

/// Of an exec that is about to start: what is unusual about how it runs. Live is the usual, and is
/// said once, at the end.
pub(crate) fn intent_tags(record: &Exec) -> impl Iterator<Item = &'static str> {
    mode_tags(record.mode)
        .iter()
        .copied()
        .filter(|tag| *tag != LIVE_EXECUTION)
}

/// Of an exec that has ended, or was refused.
pub(crate) fn outcome_tags(record: &Exec) -> Vec<&'static str> {
    let mut tags = facts(record);
    // What was lost had an owner that started it, whatever it could still write down.
    if record.started_at.is_some() && record.mode != Mode::Mock {
        tags.push(SANDBOX_EXECUTION);
    }
    tags.push(match record.status {
        Status::Succeeded => "success",
        Status::Queued
        | Status::AwaitingApproval
        | Status::Running
        | Status::Failed
        | Status::TimedOut
        | Status::Killed
        | Status::Canceled
        | Status::PolicyDenied
        | Status::Held
        | Status::Lost
        | Status::Error => "failure",
    });
    let said = [
        (record.status == Status::PolicyDenied, "policy_denied"),
        (record.limit_hit.is_some(), "resource_limit_exceeded"),
    ];
    tags.extend(said.into_iter().filter(|it| it.0).map(|it| it.1));
    tags
}

/// Of what was decided about an exec's changes after its end. It is no second success: whoever
/// counts those counts execs.
pub(crate) fn settled_tags(record: &Exec) -> Vec<&'static str> {
    facts(record)
}

fn facts(record: &Exec) -> Vec<&'static str> {
    let mut tags = vec![TOOL_INVOCATION];
    tags.extend(mode_tags(record.mode));
    let count = record.effect_count.unwrap_or_default();
    let network = record.policy_snapshot.as_ref();
    let traffic = record.traffic.as_ref();
    let agreed = record.consent.as_ref().map(|consent| consent.agreed);
    let said = [
        (!record.gates.is_empty(), "crv_validated"),
        (record.gates.iter().any(|gate| gate.blocked), "crv_blocked"),
        (count.violations > 0, "permission_violation"),
        (
            matches!(agreed, Some(Agreed::People | Agreed::Grant)),
            "approved",
        ),
        (agreed == Some(Agreed::Automatic), "approved_automatically"),
        (
            network.is_some_and(|profile| profile.network != NetworkMode::None),
            "network",
        ),
        (
            traffic.is_some_and(|it| !it.refused.is_empty() || it.refused_more > 0),
            "network_refused",
        ),
        (!record.secrets.is_empty(), "secrets"),
        (record.risk.tier == Tier::High, "risk_high"),
        (record.risk.tier == Tier::Critical, "risk_critical"),
        (
            record.preview.is_some() && record.mode != Mode::Simulate,
            "previewed",
        ),
    ];
    tags.extend(said.into_iter().filter(|it| it.0).map(|it| it.1));
    tags
}

const fn mode_tags(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Run => &[LIVE_EXECUTION],
        Mode::Simulate => &[SIMULATION_MODE],
        // What it sends is gone, whatever becomes of what it wrote.
        Mode::Transactional => &[LIVE_EXECUTION, TRANSACTIONAL],
        Mode::Mock => &[SIMULATION_MODE, MOCK],
    }
}

/// For the body of an entry: what is not known is not there.
pub(crate) fn recollection(record: &Exec) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("provenance".to_owned(), provenance(record));
    let parts = [
        ("state", state(record)),
        ("effects", effects(record)),
        ("gates", gates(&record.gates)),
    ];
    body.extend(
        parts
            .into_iter()
            .filter_map(|(name, part)| Some((name.to_owned(), part?))),
    );
    body
}

/// Which step of which task it was. A step is a sandbox; what got none is its own.
pub(crate) fn provenance(record: &Exec) -> Value {
    let (step, source) = match &record.sandbox_id {
        Some(sandbox) => (sandbox.to_string(), format!("sandbox-{sandbox}")),
        None => (
            record.exec_id.to_string(),
            format!("exec-{}", record.exec_id),
        ),
    };
    json!({
        "task_id": record.ids.task_id,
        "workflow_id": record.ids.workflow_id,
        "step_id": step,
        "source_event_id": source,
        "timestamp": record.ended_at.or(record.started_at),
    })
}

fn state(record: &Exec) -> Option<Value> {
    let mut state = Map::new();
    if let Some((before, after)) = touched(record) {
        state.insert("before".to_owned(), json!(before));
        state.insert("after".to_owned(), json!(after));
    }
    if let Some(snapshot) = &record.snapshot_before {
        state.insert("snapshot_before".to_owned(), json!(snapshot));
    }
    if let Some(preview) = &record.preview {
        state.insert("preview".to_owned(), json!(preview.digest));
        state.insert("preview_of".to_owned(), json!(preview.exec_id));
    }
    (!state.is_empty()).then_some(Value::Object(state))
}

/// Digests of the files that it wrote, as they were and as they are: of what stood where, with
/// each file's own digest. None where some are not in the record: a digest of a part would pass
/// for one of the whole.
fn touched(record: &Exec) -> Option<(String, String)> {
    let count = record.effect_count?;
    if count.total != record.effects.len() as u64 || count.dropped > 0 {
        return None;
    }
    let mut sides: [BTreeMap<String, Value>; 2] = Default::default();
    for effect in &record.effects {
        let Deed::FilesystemWrite(write) = &effect.deed else {
            continue;
        };
        let path = write.path.display();
        let origin = write.from.as_ref().map(|from| from.display());
        // Written twice: as it was before the first, and as it is after the last.
        sides[0]
            .entry(origin.clone().unwrap_or_else(|| path.clone()))
            .or_insert_with(|| facts_of(write.before.as_ref()));
        if let Some(origin) = origin {
            sides[0].entry(path.clone()).or_default();
            sides[1].insert(origin, Value::Null);
        }
        sides[1].insert(path, facts_of(write.after.as_ref()));
    }
    let [before, after] = sides.map(|side| {
        let side = Value::Object(side.into_iter().collect());
        hex::encode(&sha256(canonical(&side).as_bytes()))
    });
    Some((before, after))
}

fn facts_of(facts: Option<&FileFacts>) -> Value {
    facts.map_or(Value::Null, |facts| {
        json!([facts.kind, facts.size, facts.mode, facts.digest])
    })
}

fn effects(record: &Exec) -> Option<Value> {
    let count = record.effect_count?;
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for kind in record.effects.iter().map(Effect::kind) {
        *kinds.entry(kind.as_str()).or_default() += 1;
    }
    Some(json!({
        "total": count.total,
        "violations": count.violations,
        "dropped": count.dropped,
        "kinds": kinds,
    }))
}

/// Their names are the operator's; what they said of the output is not told.
fn gates(gates: &[GateResult]) -> Option<Value> {
    if gates.is_empty() {
        return None;
    }
    let asked = gates.iter().take(GATES_NAMED).map(|gate| {
        json!({
            "gate": gate.gate,
            "status": gate.status,
            "failure_code": gate.failure_code,
        })
    });
    let of = |status: GateStatus| gates.iter().filter(|gate| gate.status == status).count();
    Some(json!({
        "passed": of(GateStatus::Passed),
        "warnings": of(GateStatus::Warning),
        "blocked": of(GateStatus::Blocked),
        "asked": asked.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::EffectCount;

    fn record() -> Exec {
        let text = include_str!("../examples/record.json");
        let mut record: Exec = serde_json::from_str(text).unwrap();
        record.status = Status::Succeeded;
        record.sandbox_id = Some(format!("sb_{}", "0a".repeat(16)).parse().unwrap());
        record.ids.task_id = Some("build-12".to_owned());
        record.ids.workflow_id = Some("nightly".to_owned());
        record
    }

    fn sorted(mut tags: Vec<&'static str>) -> Vec<&'static str> {
        tags.sort_unstable();
        tags
    }

    fn write(path: &str, before: Option<&str>, after: Option<&str>) -> Effect {
        let facts = |digest: Option<&str>| {
            digest.map(|digest| json!({"kind": "file", "size": 3, "mode": 420, "digest": digest}))
        };
        serde_json::from_value(json!({
            "seq": 1,
            "at": "2026-01-02T03:04:05Z",
            "type": "filesystem_write",
            "details": {
                "operation": "modified", "path": path, "before": facts(before),
                "after": facts(after), "diff": "+hunter2",
            },
            "would_succeed": true,
        }))
        .unwrap()
    }

    fn count(record: &mut Exec) {
        record.effect_count = Some(EffectCount {
            total: record.effects.len() as u64,
            violations: 0,
            dropped: 0,
        });
    }

    #[test]
    fn a_plain_run_is_a_live_success() {
        assert_eq!(
            sorted(outcome_tags(&record())),
            [
                "live_execution",
                "sandbox_execution",
                "success",
                "tool_invocation"
            ]
        );
    }

    #[test]
    fn each_mode_has_its_words() {
        let of = |mode| {
            let mut record = record();
            record.mode = mode;
            (
                intent_tags(&record).collect::<Vec<_>>(),
                outcome_tags(&record),
            )
        };
        let (intent, outcome) = of(Mode::Simulate);
        assert_eq!(intent, [SIMULATION_MODE]);
        assert!(outcome.contains(&SIMULATION_MODE) && !outcome.contains(&LIVE_EXECUTION));
        let (intent, outcome) = of(Mode::Transactional);
        assert_eq!(intent, [TRANSACTIONAL]);
        assert!(outcome.contains(&TRANSACTIONAL) && outcome.contains(&LIVE_EXECUTION));
        let (intent, outcome) = of(Mode::Mock);
        assert_eq!(intent, [SIMULATION_MODE, MOCK]);
        assert!(outcome.contains(&MOCK) && !outcome.contains(&SANDBOX_EXECUTION));
        assert!(of(Mode::Run).0.is_empty());
    }

    #[test]
    fn only_success_is_success() {
        for status in Status::ALL.into_iter().filter(|it| it.is_final()) {
            let mut record = record();
            record.status = status;
            let tags = outcome_tags(&record);
            let succeeded = status == Status::Succeeded;
            assert_eq!(tags.contains(&"success"), succeeded, "{status}");
            assert_eq!(tags.contains(&"failure"), !succeeded, "{status}");
            let denied = status == Status::PolicyDenied;
            assert_eq!(tags.contains(&"policy_denied"), denied, "{status}");
        }
    }

    #[test]
    fn what_never_started_was_no_execution() {
        let mut record = record();
        record.started_at = None;
        record.sandbox_id = None;
        assert!(!outcome_tags(&record).contains(&SANDBOX_EXECUTION));
        let provenance = provenance(&record);
        assert_eq!(provenance["step_id"], record.exec_id.as_str());
        assert_eq!(
            provenance["source_event_id"],
            format!("exec-{}", record.exec_id)
        );
    }

    /// One change to the record, one word: none comes of itself.
    #[test]
    fn each_fact_has_its_word() {
        let gate = |status: &str, blocked: bool| json!([{"gate": "schema", "status": status, "blocked": blocked, "validations": []}]);
        let consent = |agreed: &str| json!({"agreed": agreed});
        let refused = json!({
            "connections": 0, "sent": 0, "received": 0,
            "refused": [{"host": "x.example", "port": 443, "code": "NOT_IN_ALLOWLIST", "times": 1}],
        });
        let preview = json!({"exec_id": record().exec_id, "digest": "d"});
        let usual = outcome_tags(&record());
        for (field, value, expected) in [
            ("gates", gate("passed", false), &["crv_validated"][..]),
            (
                "gates",
                gate("blocked", true),
                &["crv_blocked", "crv_validated"],
            ),
            (
                "effect_count",
                json!({"total": 1, "violations": 1, "dropped": 0}),
                &["permission_violation"],
            ),
            ("consent", consent("people"), &["approved"]),
            ("consent", consent("grant"), &["approved"]),
            ("consent", consent("policy"), &[]),
            ("consent", consent("automatic"), &["approved_automatically"]),
            ("traffic", refused, &["network_refused"]),
            (
                "risk",
                json!({"tier": "high", "signals": []}),
                &["risk_high"],
            ),
            (
                "risk",
                json!({"tier": "critical", "signals": []}),
                &["risk_critical"],
            ),
            ("limit_hit", json!("memory"), &["resource_limit_exceeded"]),
            ("preview", preview, &["previewed"]),
        ] {
            let mut json = serde_json::to_value(record()).unwrap();
            json[field] = value.clone();
            let changed: Exec = serde_json::from_value(json).unwrap();
            let mut new = outcome_tags(&changed);
            new.retain(|tag| !usual.contains(tag));
            assert_eq!(sorted(new), expected, "{field}: {value}");
        }
    }

    #[test]
    fn what_it_was_given_has_its_words() {
        let mut record = record();
        if let Some(profile) = &mut record.policy_snapshot {
            profile.network = NetworkMode::Allowlist;
        }
        record.secrets = serde_json::from_value(json!([
            {"name": "token", "version": 1, "delivery": "file"},
        ]))
        .unwrap();
        let tags = outcome_tags(&record);
        assert!(tags.contains(&"network") && tags.contains(&"secrets"));
    }

    /// What is decided later is not counted as one more end.
    #[test]
    fn what_is_settled_is_no_second_success() {
        let tags = settled_tags(&record());
        assert_eq!(sorted(tags), ["live_execution", "tool_invocation"]);
    }

    #[test]
    fn provenance_names_task_workflow_and_sandbox() {
        let record = record();
        let sandbox = record.sandbox_id.clone().unwrap();
        assert_eq!(
            provenance(&record),
            json!({
                "task_id": "build-12",
                "workflow_id": "nightly",
                "step_id": sandbox,
                "source_event_id": format!("sandbox-{sandbox}"),
                "timestamp": record.ended_at.or(record.started_at),
            })
        );
    }

    #[test]
    fn files_as_they_were_and_as_they_are_have_digests() {
        let digests = |effects: Vec<Effect>| {
            let mut record = record();
            record.effects = effects;
            count(&mut record);
            state(&record).map(|state| (state["before"].clone(), state["after"].clone()))
        };
        let nothing = digests(Vec::new()).unwrap();
        assert_eq!(nothing.0, nothing.1);
        let one = digests(vec![write("a", None, Some("1"))]).unwrap();
        assert_ne!(one.0, one.1);
        // There and back: the state is the same.
        let back = digests(vec![
            write("a", Some("1"), Some("2")),
            write("a", Some("2"), Some("1")),
        ]);
        let back = back.unwrap();
        assert_eq!(back.0, back.1);
        // The order of what is written does not matter, its place does.
        let files = |names: [&str; 2]| names.map(|name| write(name, None, Some("1"))).to_vec();
        assert_eq!(digests(files(["a", "b"])), digests(files(["b", "a"])));
        assert_ne!(digests(files(["a", "b"])), digests(files(["a", "c"])));
    }

    #[test]
    fn a_part_of_the_effects_has_no_digest() {
        let mut record = record();
        record.effects = vec![write("a", None, Some("1"))];
        count(&mut record);
        assert!(state(&record).is_some());
        for (total, dropped) in [(2, 0), (1, 1)] {
            record.effect_count = Some(EffectCount {
                total,
                violations: 0,
                dropped,
            });
            assert_eq!(state(&record), None);
        }
    }

    #[test]
    fn contents_are_counted_and_not_told() {
        let mut record = record();
        record.effects = vec![write("secret-plan.txt", None, Some("1"))];
        count(&mut record);
        record.gates = serde_json::from_value(json!([{
            "gate": "schema", "status": "blocked", "blocked": true,
            "failure_code": "POLICY_VIOLATION", "remediation": "remove hunter2",
            "validations": [{
                "validator": "v", "valid": false, "confidence": 0.25, "reason": "says hunter2",
            }],
        }]))
        .unwrap();
        let body = Value::Object(recollection(&record));
        assert_eq!(
            body["effects"],
            json!({
                "total": 1, "violations": 0, "dropped": 0, "kinds": {"filesystem_write": 1},
            })
        );
        assert_eq!(
            body["gates"],
            json!({
                "passed": 0, "warnings": 0, "blocked": 1,
                "asked": [{
                    "gate": "schema", "status": "blocked", "failure_code": "POLICY_VIOLATION",
                }],
            })
        );
        let text = body.to_string();
        for secret in ["hunter2", "secret-plan", "0.25"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
