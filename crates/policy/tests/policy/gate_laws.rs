//! What holds for any text of gates.

use glovebox_model::{Correlation, Mode, SpaceId, Tier};
use glovebox_policy::Config;
use proptest::prelude::*;

const PIECES: [&str; 44] = [
    "[[gate]]\n",
    "[[gate.example]]\n",
    "[[agent.a.gate]]\n",
    "[gate]\n",
    "name = \"a\"\n",
    "name = \"b\"\n",
    "check = [",
    "]\n",
    "{ ",
    " }",
    ", ",
    "\"exit\"",
    "\"no_secrets\"",
    "exit = {}",
    "exit = { codes = [0, -1] }",
    "cel = \"effects.all(e, e.path != 'x')\"",
    "cel = \"output.x.y[0] > 1\"",
    "cel = \"((((\"",
    "schema = { is = '{\"$ref\": \"#\"}' }",
    "schema = { is = { type = \"array\", items = { \"$ref\" = \"#\" } } }",
    "schema = { is = '[' }",
    "anomaly = { metric = \"effects\", limit = 1e308 }",
    "statistical_bounds = { at = \"/a\", min = -1e308, max = 1e308 }",
    "monotonic = { at = \"/v\" }",
    "path_scope = { within = [\"**\"], outside = [\"[{*?\"] }",
    "max_size = { stdout = \"9999999T\" }",
    "hosts = [\"*\", \"[::1]:1\"]",
    "command = { argv = [\"\\u0001\"] }",
    "block = false\n",
    "recovery = \"ignore\"\n",
    "required_confidence = 1\n",
    "required_confidence = inf\n",
    "passes = true\n",
    "passes = false\n",
    "output = \"null\"\n",
    "output = '{\"a\": [1, {\"v\": \"1.2\"}]}'\n",
    "previous = '{\"v\": 1e999}'\n",
    "effects = [{ write = \"../x\", diff = \"+++ @@\" }]\n",
    "effects = [{ rename = [\"a\", \"b\"], size = 9223372036854775807 }]\n",
    "effects = [{ request = \"[::1]:80\" }, { spawn = [\"\"] }]\n",
    "tiers = [\"high\"]\n",
    "tools = [\"group:fs\", \"*\"]\n",
    "spaces = [\"é\"]\n",
    "because = \"x\"\n",
];

fn text_of(pieces: &[prop::sample::Index]) -> String {
    let piece = |it: &prop::sample::Index| PIECES[it.index(PIECES.len())];
    pieces.iter().map(piece).collect()
}

proptest! {
    #[test]
    fn text_of_gates_never_panics(pieces in prop::collection::vec(any::<prop::sample::Index>(), 0..14)) {
        let _ = Config::parse(&text_of(&pieces), "g.toml");
    }

    #[test]
    fn a_gate_with_any_check_and_any_example_never_panics(
        checks in prop::collection::vec(prop::sample::select(PIECES[13..28].to_vec()), 1..4),
        example in prop::collection::vec(prop::sample::select(PIECES[32..40].to_vec()), 1..4),
    ) {
        let checks: Vec<String> = checks.iter().map(|it| format!("{{ {it} }}")).collect();
        let text = format!(
            "[[gate]]\nname = \"g\"\ncheck = [{}]\n[[gate.example]]\n{}",
            checks.join(", "),
            example.concat(),
        );
        let _ = Config::parse(&text, "g.toml");
    }

    #[test]
    fn any_text_in_the_place_of_a_value_never_panics(value in "\\PC{0,40}") {
        for key in ["cel", "hosts", "path_scope", "schema", "not_null", "command"] {
            let quoted = toml_text(&value);
            for check in [
                format!("{{ {key} = {quoted} }}"),
                format!("{{ {key} = {{ within = [{quoted}], at = {quoted}, is = {quoted} }} }}"),
                format!("{{ {key} = {{ at = {quoted} }} }}"),
                format!("{{ {key} = {{ within = [{quoted}] }} }}"),
                format!("{{ {key} = {{ is = {quoted} }} }}"),
                format!("{{ {key} = {{ argv = [{quoted}] }} }}"),
            ] {
                let text = format!("[[gate]]\nname = \"g\"\ncheck = [{check}]\n");
                let _ = Config::parse(&text, "g.toml");
            }
        }
    }

    /// Whatever stands in another layer, what a wider one demands is still there.
    #[test]
    fn layers_only_add_gates(
        top in prop::collection::btree_set("[a-d]", 0..4),
        narrow in prop::collection::btree_set("[e-h]", 0..4),
    ) {
        let write = |place: &str, names: &std::collections::BTreeSet<String>| -> String {
            let gate = |it: &String| format!("[[{place}gate]]\nname = \"{it}\"\ncheck = [\"exit\"]\n");
            names.iter().map(gate).collect()
        };
        let mut ids = Correlation::of_space(SpaceId::local());
        ids.agent_id = Some("bot".to_owned());
        let of = |text: &str| {
            let config = Config::parse(text, "g.toml").unwrap();
            config.gates_for(&ids, &["x"], Tier::Safe, Mode::Simulate)
        };
        let alone = of(&write("", &top));
        let both = of(&(write("", &top) + &write("agent.bot.", &narrow)));
        prop_assert_eq!(&both[..alone.len()], &alone[..]);
        prop_assert_eq!(both.len(), alone.len() + narrow.len());
    }
}

fn toml_text(value: &str) -> String {
    let escape = |char: char| match char {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        char if char.is_control() => format!("\\U{:08X}", u32::from(char)),
        char => char.to_string(),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}
