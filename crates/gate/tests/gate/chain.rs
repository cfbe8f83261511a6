//! The laws of chains.

use glovebox_gate::{
    Check, CommandCheck, Expression, Gate, MaxSize, NotNull, PathGlob, PathScope, judge,
};
use glovebox_model::{Bytes, Confidence, FailureCode, GateStatus, Recovery};
use proptest::prelude::*;

use crate::fixture::{Runner, with_subject, wrote};

fn good() -> Check {
    Check::Exit(Default::default())
}

fn bad() -> Check {
    Check::NotNull(NotNull::default())
}

fn named(name: &str, checks: Vec<Check>) -> Gate {
    Gate::new(name, checks).unwrap()
}

#[test]
fn the_first_that_blocks_is_the_last() {
    let gates = [
        named("a", vec![good()]),
        named("b", vec![bad()]).blocking(false),
        named("c", vec![bad()]).recovering(Recovery::Ignore),
        named("d", vec![bad()])
            .recovering(Recovery::Escalate)
            .because("a reason"),
        named("e", vec![bad()]),
    ];
    let results = with_subject("", &[], |it| judge(&gates, &it, &Runner::ending(0)));
    let seen: Vec<_> = results
        .iter()
        .map(|it| (it.gate.as_str(), it.status, it.blocked))
        .collect();
    assert_eq!(
        seen,
        [
            ("a", GateStatus::Passed, false),
            ("b", GateStatus::Warning, false),
            ("c", GateStatus::Warning, false),
            ("d", GateStatus::Blocked, true),
        ]
    );
    assert_eq!(results[0].recovery, None);
    assert_eq!(results[0].remediation, None);
    assert_eq!(results[1].failure_code, Some(FailureCode::MissingData));
    assert_eq!(results[2].recovery, Some(Recovery::Ignore));
    assert_eq!(results[3].recovery, Some(Recovery::Escalate));
    let remediation = results[3].remediation.clone().unwrap();
    assert!(
        remediation.starts_with("a reason: print the value"),
        "{remediation}"
    );
}

#[test]
fn all_that_is_wrong_is_told_but_no_command_is_run_for_it() {
    let command = || Check::Command(CommandCheck::new(vec!["true".to_owned()]).unwrap());
    let runner = Runner::ending(0);
    let gates = [named("g", vec![bad(), command(), good(), bad()])];
    let results = with_subject("", &[], |it| judge(&gates, &it, &runner));
    let valid: Vec<bool> = results[0].validations.iter().map(|it| it.valid).collect();
    assert_eq!(valid, [false, true, false]);
    assert_eq!(runner.ran.get(), 0);
    let gates = [named("g", vec![good(), command(), bad()])];
    with_subject("", &[], |it| judge(&gates, &it, &runner));
    assert_eq!(runner.ran.get(), 1);
}

#[test]
fn a_chain_without_gates_says_nothing() {
    let results = with_subject("", &[], |it| judge(&[], &it, &Runner::ending(0)));
    assert!(results.is_empty());
    assert!(Gate::new("many", vec![good(); 33]).is_none());
}

fn check() -> impl Strategy<Value = Check> {
    prop_oneof![
        Just(good()),
        Just(bad()),
        Just(Check::NoNetwork),
        Just(Check::NoViolations),
        (0_u64..20).prop_map(|most| Check::MaxSize(MaxSize {
            stdout: Some(Bytes(most)),
            ..MaxSize::default()
        })),
        Just(Check::PathScope(PathScope {
            within: vec![PathGlob::new("src/**").unwrap()],
            outside: Vec::new(),
        })),
        Just(Check::Cel(Expression::new("effects.size() < 2").unwrap())),
        Just(Check::Deterministic(glovebox_gate::Deterministic)),
        Just(Check::Command(
            CommandCheck::new(vec!["x".to_owned()]).unwrap()
        )),
    ]
}

fn any_gate() -> impl Strategy<Value = Gate> {
    let recovery = prop::sample::select(Recovery::ALL.to_vec());
    let checks = prop::collection::vec(check(), 1..4);
    (checks, any::<bool>(), recovery, 0_u8..=10).prop_map(|(checks, block, recovery, tenths)| {
        let required = Confidence::new(f64::from(tenths) / 10.0).unwrap();
        named("g", checks)
            .blocking(block)
            .recovering(recovery)
            .requiring(required)
    })
}

fn blocked(gates: &[Gate], stdout: &str, paths: &[String], code: i32) -> bool {
    let effects: Vec<_> = paths.iter().map(|it| wrote(it)).collect();
    let results = with_subject(stdout, &effects, |it| {
        judge(gates, &it, &Runner::ending(code))
    });
    let blocks = results.iter().filter(|it| it.blocked).count();
    assert!(blocks <= 1 && results.len() <= gates.len());
    if blocks == 1 {
        assert!(results.last().unwrap().blocked);
    } else {
        assert_eq!(results.len(), gates.len());
    }
    for result in &results {
        assert_eq!(result.failure_code.is_some(), !result.passed());
        assert_eq!(result.blocked, result.status == GateStatus::Blocked);
    }
    blocks == 1
}

fn outputs() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("0".to_owned()),
        Just("\"\"".to_owned()),
        Just("false".to_owned()),
        Just("null".to_owned()),
        Just(String::new()),
        "\\PC{0,20}",
    ]
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("(src/)?[a-c]{1,2}", 0..3)
}

proptest! {
    #[test]
    fn adding_a_gate_never_keeps_more(
        gates in prop::collection::vec(any_gate(), 0..4),
        more in any_gate(),
        at in 0_usize..5,
        stdout in outputs(),
        paths in paths(),
        code in 0..2,
    ) {
        let before = blocked(&gates, &stdout, &paths, code);
        let mut longer = gates.clone();
        longer.insert(at.min(gates.len()), more);
        prop_assert!(!before || blocked(&longer, &stdout, &paths, code));
    }

    #[test]
    fn adding_a_check_never_keeps_more(
        checks in prop::collection::vec(check(), 1..4),
        more in check(),
        at in 0_usize..5,
        stdout in outputs(),
        paths in paths(),
    ) {
        let before = blocked(&[named("g", checks.clone())], &stdout, &paths, 0);
        let mut longer = checks.clone();
        longer.insert(at.min(checks.len()), more);
        prop_assert!(!before || blocked(&[named("g", longer)], &stdout, &paths, 0));
    }

    #[test]
    fn the_order_of_gates_does_not_change_whether_it_is_blocked(
        gates in prop::collection::vec(any_gate(), 0..5),
        order in any::<prop::sample::Index>(),
        stdout in outputs(),
        paths in paths(),
        code in 0..2,
    ) {
        let mut turned = gates.clone();
        if !turned.is_empty() {
            let by = order.index(turned.len());
            turned.rotate_left(by);
        }
        let expected = blocked(&gates, &stdout, &paths, code);
        prop_assert_eq!(blocked(&turned, &stdout, &paths, code), expected);
        turned.reverse();
        prop_assert_eq!(blocked(&turned, &stdout, &paths, code), expected);
    }

    #[test]
    fn gates_that_block_nothing_change_nothing(
        gates in prop::collection::vec(any_gate(), 0..4),
        harmless in prop::collection::vec(any_gate(), 0..4),
        stdout in outputs(),
        paths in paths(),
    ) {
        let harmless = harmless.into_iter().map(|it| it.blocking(false));
        let all: Vec<Gate> = harmless.chain(gates.clone()).collect();
        prop_assert_eq!(
            blocked(&all, &stdout, &paths, 0),
            blocked(&gates, &stdout, &paths, 0)
        );
    }

    #[test]
    fn requiring_more_confidence_never_keeps_more(
        gate in any_gate(),
        tenths in 0_u8..=10,
        stdout in outputs(),
        paths in paths(),
    ) {
        let relaxed = gate.clone().requiring(Confidence::NONE);
        let strict = gate.requiring(Confidence::new(f64::from(tenths) / 10.0).unwrap());
        let before = blocked(&[relaxed], &stdout, &paths, 0);
        prop_assert!(!before || blocked(&[strict], &stdout, &paths, 0));
    }
}
