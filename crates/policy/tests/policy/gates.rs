//! Gates as they are read.

use glovebox_gate::{Check, CheckName, Gate, Metric};
use glovebox_model::{Correlation, Mode, SpaceId, Tier};
use glovebox_policy::Config;

fn parse(text: &str) -> Config {
    Config::parse(text, "g.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    let error = Config::parse(text, "g.toml").unwrap_err();
    let rule = error.rule.as_ref().unwrap();
    let place = format!("(g.toml:{}:", rule.line);
    assert!(error.message.contains(&place), "{error}");
    error.message
}

fn ids() -> Correlation {
    Correlation::of_space(SpaceId::local())
}

fn names(config: &Config, ids: &Correlation, tool: &str, tier: Tier, mode: Mode) -> Vec<String> {
    let gates = config.gates_for(ids, &[tool], tier, mode);
    gates.iter().map(|it| it.name().to_owned()).collect()
}

fn with_check(check: &str) -> String {
    format!("[[gate]]\nname = \"g\"\ncheck = [{check}]\n")
}

const WHOLE: &str = r#"
[[gate]]
name = "project tests"
spaces = ["local"]
tools = ["shell", "python"]
tiers = ["medium", "high", "critical"]
modes = ["simulate", "transactional"]
block = true
required_confidence = 0.8
recovery = "ask_user"
because = "what is kept must pass the tests"
check = [ { path_scope = { within = ["src/**", "tests/**"], outside = ["**/.env"] } },
          { max_size = { changed_files = 50, changed_bytes = "5M" } },
          { command = { argv = ["pytest", "-q"], timeout = "2m", memory = "1G", pids = 64 } } ]

[[gate.example]]
passes = true
effects = [{ write = "src/a.py", diff = "+x = 1" }, { rename = ["src/b", "tests/b"] }]

[[gate.example]]
passes = false
failure = "OUT_OF_SCOPE"
effects = [{ write = "src/.env" }]

[[gate.example]]
failure = "TOOL_ERROR"
command_exit = 1
"#;

#[test]
fn a_gate_is_read_with_all_that_it_says() {
    let config = parse(WHOLE);
    let gates = config.gates_for(&ids(), &["shell"], Tier::High, Mode::Transactional);
    assert_eq!(gates.len(), 1);
    assert_eq!(gates[0].name(), "project tests");
    let checks: Vec<CheckName> = gates[0].checks().iter().map(Check::name).collect();
    let expected = [CheckName::PathScope, CheckName::MaxSize, CheckName::Command];
    assert_eq!(checks, expected);
    let Check::Command(command) = &gates[0].checks()[2] else {
        panic!("{checks:?}");
    };
    assert_eq!(command.argv, ["pytest", "-q"]);
    assert_eq!(command.timeout.get(), 120_000);
    assert_eq!(command.memory.map(|it| it.get()), Some(1 << 30));
    assert_eq!(command.pids, Some(64));
    // The same text is the same configuration.
    assert_eq!(parse(WHOLE), config);
    assert_ne!(parse(&WHOLE.replace("0.8", "0.7")), config);
}

#[test]
fn every_check_can_be_written() {
    for check in [
        "\"not_null\"",
        "{ not_null = { at = \"/id\" } }",
        "{ schema = { is = '{\"type\": [\"object\", \"null\"]}' } }",
        "{ schema = { at = \"/a\", is = { type = \"object\", required = [\"x\"], minProperties = 1 } } }",
        "{ monotonic = { at = \"/version\", strict = true } }",
        "{ max_size = { stdout = \"1M\", artifacts = 3, artifact_bytes = 0 } }",
        "{ statistical_bounds = { metric = \"duration_ms\", max = 1000 } }",
        "{ statistical_bounds = { at = \"/score\", min = 0.5, max = 1 } }",
        "{ anomaly = { metric = \"changed_files\" } }",
        "{ anomaly = { at = \"/rows\", method = \"z_score\", limit = 3, min_samples = 10, min_spread = 1 } }",
        "\"no_secrets\"",
        "{ no_secrets = { high_entropy = true } }",
        "{ path_scope = { outside = \"**/.env\" } }",
        "{ diff_size = { lines = 500, files = 20 } }",
        "\"no_violations\"",
        "{ no_violations = {} }",
        "\"exit\"",
        "{ exit = { codes = [0, 1] } }",
        "\"no_network\"",
        "{ hosts = [\"api.example.com:443\", \"*.example.org\"] }",
        "{ hosts = \"api.example.com\" }",
        "\"deterministic\"",
        "{ cel = \"effects.size() < 10 && exit_code == 0\" }",
        "{ command = { argv = [\"true\"] } }",
    ] {
        parse(&with_check(check));
    }
    for metric in Metric::ALL {
        let metric = metric.as_str();
        parse(&with_check(&format!(
            "{{ anomaly = {{ metric = \"{metric}\" }} }}"
        )));
    }
}

#[test]
fn every_mistake_in_a_gate_is_named_with_its_place() {
    for (text, expected) in [
        (
            "[gate]\nname = \"g\"\n".to_owned(),
            "`gate` must be one or more tables; write `[[gate]]`, with two brackets, not a table (g.toml:1:1)",
        ),
        (
            "[[gate]]\ncheck = [\"exit\"]\n".to_owned(),
            "the gate has no `name` (g.toml:1:1)",
        ),
        (
            "[[gate]]\nname = \"g\"\n".to_owned(),
            "the gate has no `check` (g.toml:1:1)",
        ),
        (
            with_check(""),
            "`check` must hold 1 to 32 checks (g.toml:3:9)",
        ),
        (
            with_check("\"exit\"") + "chek = 1\n",
            "unknown key `chek` in `[[gate]]` (g.toml:4:1)",
        ),
        (with_check("\"exits\""), "`check`: `exits` is not one of"),
        (
            with_check("{ exit = {}, no_network = {} }"),
            "each entry of `check` must be the name of a check, or a table with one check (g.toml:3:10)",
        ),
        (with_check("{}"), "each entry of `check` must be"),
        (
            with_check("1"),
            "`check` must be the name of a check, or a table with one check, not an integer (g.toml:3:10)",
        ),
        (
            with_check("{ exit = { code = 1 } }"),
            "unknown key `code` in `exit` (g.toml:3:21)",
        ),
        (
            with_check("{ no_network = { x = 1 } }"),
            "unknown key `x` in `no_network`, which takes none (g.toml:3:27)",
        ),
        (
            with_check("{ exit = { codes = [] } }"),
            "`codes` must be an array of 1 to 64 exit codes from 0 to 255 (g.toml:3:29)",
        ),
        (
            with_check("{ exit = { codes = [256] } }"),
            "`codes` must be an array of 1 to 64 exit codes from 0 to 255, not an integer (g.toml:3:30)",
        ),
        (
            with_check("\"max_size\""),
            "`max_size` must be told more (g.toml:3:10)",
        ),
        (
            with_check("{ max_size = {} }"),
            "`max_size` must be told more (g.toml:3:12)",
        ),
        (
            with_check("{ max_size = { stdout = \"lots\" } }"),
            "`stdout`: `lots` is not a size such as",
        ),
        (
            with_check("{ path_scope = { within = [] } }"),
            "`within` must hold 1 to 64 entries (g.toml:3:36)",
        ),
        (
            with_check("{ path_scope = { within = [\"a**\"] } }"),
            "`within`: `a**` has a `**` that is not a segment of its own (g.toml:3:37)",
        ),
        (
            with_check("{ path_scope = {} }"),
            "`path_scope` must be told more",
        ),
        (
            with_check("{ statistical_bounds = { metric = \"effects\" } }"),
            "`statistical_bounds` needs `min`, `max` or both (g.toml:3:12)",
        ),
        (
            with_check("{ statistical_bounds = { metric = \"effects\", min = 2, max = 1 } }"),
            "`statistical_bounds` has a `min` of 2 above its `max` of 1",
        ),
        (
            with_check("{ statistical_bounds = { min = 2 } }"),
            "`statistical_bounds` has neither `metric` nor `at`",
        ),
        (
            with_check("{ statistical_bounds = { metric = \"effects\", at = \"/a\", min = 2 } }"),
            "`statistical_bounds` has both `metric` and `at`",
        ),
        (
            with_check("{ statistical_bounds = { metric = \"effects\", min = nan } }"),
            "`min` must be a number such as `0.8`, not a decimal number",
        ),
        (
            with_check("{ anomaly = { metric = \"speed\" } }"),
            "`metric`: `speed` is not one of",
        ),
        (
            with_check("{ anomaly = { metric = \"effects\", limit = 0 } }"),
            "`anomaly` needs a `limit` above 0",
        ),
        (
            with_check("{ anomaly = { metric = \"effects\", min_spread = -1 } }"),
            "`anomaly` needs a `min_spread` above 0",
        ),
        (
            with_check("{ not_null = { at = \"id\" } }"),
            "`at`: `id` is not a JSON pointer; begin it with `/` (g.toml:3:30)",
        ),
        (
            with_check("{ schema = { is = '{' } }"),
            "`is` is not JSON: EOF while parsing an object at line 1 column 1 (g.toml:3:28)",
        ),
        (
            with_check("{ schema = { is = { type = \"strng\" } } }"),
            "`schema` is not a JSON Schema",
        ),
        (
            with_check("{ schema = { is = '{\"$ref\": \"https://x.org/s\"}' } }"),
            "a schema may refer only to itself",
        ),
        (
            with_check("{ schema = { is = { a = 1979-05-27 } } }"),
            "`a` must be something that JSON can say, not a date",
        ),
        (with_check("{ schema = {} }"), "`schema` must be told more"),
        (
            with_check("{ monotonic = { strict = true } }"),
            "`monotonic` must be told more",
        ),
        (
            with_check("{ hosts = [] }"),
            "`hosts` must hold 1 to 64 entries",
        ),
        (
            with_check("{ hosts = [\"a/b\"] }"),
            "`hosts`: `a/b` is not a destination",
        ),
        (with_check("\"hosts\""), "`hosts` must be told more"),
        (
            with_check("{ cel = \"1 + 1\" }"),
            "`cel`: `1 + 1` is neither true nor false (g.toml:3:18)",
        ),
        (
            with_check("{ cel = \"nobody\" }"),
            "`cel`: `nobody` cannot be evaluated: Undeclared reference to 'nobody' (g.toml:3:18)",
        ),
        (
            with_check("{ cel = 1 }"),
            "`cel` must be an expression in a string, not an integer",
        ),
        (
            with_check("{ command = { argv = [] } }"),
            "`argv` must hold 1 to 256 words",
        ),
        (
            with_check("{ command = { argv = [\"x\"], timeout = \"2h\" } }"),
            "`timeout`: `2h` is above `1h`",
        ),
        (
            with_check("\"exit\"") + "required_confidence = 1.5\n",
            "`required_confidence` must be between 0 and 1 (g.toml:4:23)",
        ),
        (
            with_check("\"exit\"") + "recovery = \"pray\"\n",
            "`recovery`: `pray` is not one of `retry_alt_tool`, `ask_user`, `escalate`, `ignore` (g.toml:4:12)",
        ),
        (
            with_check("\"exit\"") + "tools = [\"bash\"]\n",
            "no exec is made by a tool that is called `bash` (g.toml:4:9)",
        ),
        (
            with_check("\"exit\"") + "modes = [\"mock\"]\n",
            "`modes`: `mock` is not one of `run`, `simulate`, `transactional` (g.toml:4:10)",
        ),
        (
            with_check("\"exit\"") + "tools = []\n",
            "`tools` must hold 1 to 64 entries",
        ),
        (
            with_check("\"exit\"") + "spaces = [\"a b\"]\n",
            "(g.toml:4:11)",
        ),
        (
            with_check("\"exit\"") + "agents = [\"\"]\n",
            "`agents` holds an empty name (g.toml:4:11)",
        ),
        (
            with_check("\"exit\"").replace("\"g\"", "\"violations\""),
            "`violations` is the gate that every simulation has (g.toml:1:1)",
        ),
        (
            with_check("\"exit\"") + &with_check("\"exit\""),
            "two gates are called `g` (g.toml:4:1)",
        ),
        (
            with_check("\"exit\"") + "[[agent.bot.gate]]\nname = \"g\"\ncheck = [\"exit\"]\n",
            "two gates are called `g` (g.toml:4:1)",
        ),
        (
            "[[agent.bot.gate]]\nname = \"g\"\nagents = [\"x\"]\ncheck = [\"exit\"]\n".to_owned(),
            "`agents` has no meaning under `[agent.bot]` (g.toml:3:1)",
        ),
        (
            "[[agent.bot.gate]]\nname = \"g\"\nchecks = [\"exit\"]\n".to_owned(),
            "unknown key `checks` in `[[agent.bot.gate]]` (g.toml:3:1)",
        ),
    ] {
        let found = refused(&text);
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

#[test]
fn examples_are_tried_when_the_file_is_read() {
    let with =
        |check: &str, example: &str| format!("{}[[gate.example]]\n{example}\n", with_check(check));
    for (check, example) in [
        ("\"not_null\"", "passes = true\noutput = \"0\""),
        ("\"not_null\"", "passes = false\noutput = \"\""),
        ("\"exit\"", "failure = \"TOOL_ERROR\"\nexit_code = 2"),
        (
            "\"no_network\"",
            "passes = false\neffects = [{ request = \"x.org:443\", method = \"GET\", path = \"/\" }]",
        ),
        (
            "\"no_violations\"",
            "failure = \"POLICY_VIOLATION\"\neffects = [{ read = \"/etc/shadow\", refused = true }]",
        ),
        (
            "{ monotonic = { at = \"/v\" } }",
            "failure = \"CONFLICT\"\noutput = '{\"v\": 1}'\nprevious = '{\"v\": 2}'",
        ),
        (
            "{ diff_size = { lines = 1 } }",
            "passes = false\neffects = [{ write = \"a\", diff = \"+x\\n+y\" }]",
        ),
        (
            "{ max_size = { changed_bytes = 10 } }",
            "passes = false\neffects = [{ write = \"a\", size = 11 }]",
        ),
        (
            "{ cel = \"effects.all(e, e.argv != ['git', 'push'])\" }",
            "passes = false\neffects = [{ spawn = [\"git\", \"push\"] }]",
        ),
        ("{ command = { argv = [\"x\"] } }", "passes = true"),
    ] {
        parse(&with(check, example));
    }
    for (check, example, expected) in [
        (
            "\"not_null\"",
            "passes = true",
            "the example should pass, and the gate fails it: there is no output (g.toml:4:1)",
        ),
        (
            "\"exit\"",
            "passes = false",
            "the example should fail, and the gate passes it (g.toml:4:1)",
        ),
        (
            "\"not_null\"",
            "failure = \"CONFLICT\"",
            "the example should fail with `CONFLICT`, and fails with `MISSING_DATA` (g.toml:4:1)",
        ),
        (
            "\"exit\"",
            "output = \"x\"",
            "the example has no `passes` (g.toml:4:1)",
        ),
        (
            "\"exit\"",
            "passes = true\nfailure = \"CONFLICT\"",
            "the example passes, and has a `failure` (g.toml:4:1)",
        ),
        (
            "\"exit\"",
            "passes = true\noutptu = \"x\"",
            "unknown key `outptu` in `[[gate.example]]` (g.toml:6:1)",
        ),
        (
            "\"exit\"",
            "passes = true\neffects = [{ size = 1 }]",
            "the effect does not say what is done (g.toml:6:12)",
        ),
        (
            "\"exit\"",
            "passes = true\neffects = [{ write = \"a\", remove = \"b\" }]",
            "the effect is two things at once (g.toml:6:27)",
        ),
        (
            "\"exit\"",
            "passes = true\neffects = [{ rename = [\"a\"] }]",
            "`rename` must hold two paths, the old one first (g.toml:6:23)",
        ),
        (
            "\"exit\"",
            "passes = true\neffects = [{ request = \"x\" }]",
            "`request`: `x` is not `host:port` (g.toml:6:24)",
        ),
        (
            "\"exit\"",
            "passes = true\nprevious = \"{\"",
            "`previous` is not JSON",
        ),
    ] {
        let found = refused(&with(check, example));
        assert!(found.contains(expected), "{found}\n{expected}");
    }
}

#[test]
fn an_example_of_a_gate_that_only_warns_is_tried_as_well() {
    let text = with_check("\"not_null\"") + "block = false\n[[gate.example]]\npasses = true\n";
    assert!(refused(&text).contains("the gate fails it"));
}

#[test]
fn gates_hold_where_their_scope_says() {
    let gate = |name: &str, rest: &str| {
        format!("[[gate]]\nname = \"{name}\"\ncheck = [\"exit\"]\n{rest}\n")
    };
    let text = [
        gate("all", ""),
        gate("other space", "spaces = [\"team\"]"),
        gate("bot", "agents = \"bot\""),
        gate("talk", "conversations = [\"c1\"]"),
        gate("dana", "users = [\"dana\"]"),
        gate("shell", "tools = \"shell*\""),
        gate("group", "tools = \"group:fs\""),
        gate("high", "tiers = [\"high\", \"critical\"]"),
        gate("simulated", "modes = [\"simulate\"]"),
    ]
    .concat();
    let config = parse(&text);
    let of = |ids: &Correlation, tool, tier, mode| names(&config, ids, tool, tier, mode);
    let plain = of(&ids(), "x", Tier::Safe, Mode::Transactional);
    assert_eq!(plain, ["all"]);
    assert_eq!(
        of(&ids(), "shell", Tier::High, Mode::Simulate),
        [Gate::VIOLATIONS, "all", "shell", "high", "simulated"]
    );
    assert_eq!(
        of(&ids(), "shell", Tier::High, Mode::Run),
        ["all", "shell", "high"]
    );
    assert!(of(&ids(), "shell", Tier::High, Mode::Mock).is_empty());
    let named = Correlation {
        user_id: Some("dana".to_owned()),
        agent_id: Some("bot".to_owned()),
        conversation_id: Some("c1".to_owned()),
        ..Correlation::of_space("team".parse().unwrap())
    };
    assert_eq!(
        of(&named, "file.read", Tier::Low, Mode::Transactional).len(),
        of(&named, "x", Tier::Low, Mode::Transactional).len() + 1,
    );
    assert_eq!(
        of(&named, "x", Tier::Low, Mode::Transactional),
        ["all", "other space", "bot", "talk", "dana"]
    );
}

#[test]
fn no_layer_removes_the_gate_of_another() {
    let gate = |place: &str, name: &str| {
        format!("[[{place}gate]]\nname = \"{name}\"\ncheck = [\"exit\"]\nblock = false\n")
    };
    // Narrow layers come later, wherever they stand in the file.
    let text = [
        gate("conversation.c1.", "e"),
        gate("agent.bot.", "d"),
        gate("user.dana.", "c"),
        gate("space.local.", "b"),
        gate("", "a"),
    ]
    .concat();
    let config = parse(&text);
    let mut ids = ids();
    assert_eq!(
        names(&config, &ids, "x", Tier::Safe, Mode::Transactional),
        ["a", "b"]
    );
    ids.user_id = Some("dana".to_owned());
    ids.agent_id = Some("bot".to_owned());
    ids.conversation_id = Some("c1".to_owned());
    assert_eq!(
        names(&config, &ids, "x", Tier::Safe, Mode::Simulate),
        [Gate::VIOLATIONS, "a", "b", "c", "d", "e"]
    );
    ids.agent_id = Some("other".to_owned());
    assert_eq!(
        names(&config, &ids, "x", Tier::Safe, Mode::Transactional),
        ["a", "b", "c", "e"]
    );
}

#[test]
fn too_many_gates_checks_and_examples_are_refused() {
    let gate = |at: usize| format!("[[gate]]\nname = \"g{at}\"\ncheck = [\"exit\"]\n");
    let many: String = (0..256).map(gate).collect();
    parse(&many);
    assert!(refused(&(many + &gate(256))).contains("there are more than 256 gates"));
    assert!(refused(&with_check(&"\"exit\",".repeat(33))).contains("1 to 32 checks"));
    let example = "[[gate.example]]\npasses = true\n";
    parse(&(with_check("\"exit\"") + &example.repeat(32)));
    let many = with_check("\"exit\"") + &example.repeat(33);
    assert!(refused(&many).contains("there are more than 32 examples"));
}

#[test]
fn the_guide_to_gates_is_read_without_complaint() {
    let guide = include_str!("../../../../docs/guide/gates.md");
    let blocks = guide.split("```toml\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|it| it.split("```").next()).collect();
    assert_eq!(blocks.len(), 4);
    for block in &blocks {
        parse(block);
    }
    let all = parse(&blocks.concat());
    let mut ids = ids();
    ids.agent_id = Some("reviewer".to_owned());
    assert_eq!(
        names(&all, &ids, "skill.report", Tier::High, Mode::Simulate),
        [Gate::VIOLATIONS, "usual size", "answer", "quiet"]
    );
}

#[test]
fn the_reference_names_every_check_metric_variable_and_key() {
    let reference = include_str!("../../../../docs/reference/config.md");
    let gates = reference.split("## Gates").nth(1).unwrap();
    let gates = gates.split("\n## ").next().unwrap();
    let checks = CheckName::ALL.map(CheckName::as_str);
    let metrics = Metric::ALL.map(Metric::as_str);
    let words = checks
        .iter()
        .chain(&metrics)
        .chain(&glovebox_gate::VARIABLES);
    for word in words {
        assert!(gates.contains(&format!("`{word}`")), "{word}");
    }
}
