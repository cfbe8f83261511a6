//! What a person, or a client, is told about a decision; and what an approval is bound to.

use glovebox_model::{ByteString, Call, Input, PartialProfile, Tier, WorkspaceRef};
use glovebox_policy::{Assessed, Config, Decision, Explanation, Layer, Surface, assess, resolve};

use crate::fixture::{HOST, call, capping, limit, run, silent, variable, with_env};

#[test]
fn an_allowed_call_shows_each_field_with_layer_line_and_change() {
    let text = "[settings]\nmemory = \"2G\"\n[settings.env]\nLANG = \"C\"\n[space.local]\nworkspace = \"ro\"\n";
    let config = Config::parse(text, "g.toml").unwrap();
    let asked = capping(PartialProfile {
        tier: Some(Tier::Low),
        ..limit("timeout", "5m")
    });
    let layers = config.layers_for(&asked.ids);
    let system = config.system(Surface::Server, HOST).unwrap();
    let assessed = resolve(asked, &system, &layers).map(assess).unwrap();
    let explanation = Explanation::of(Ok(&assessed));
    assert_eq!(explanation.decision, Decision::Allow);
    let expected = "\
decision: allow
risk: medium
  low declared_tier
  medium other_command at 1:1
capped: timeout from 5m to 1m by the system defaults

FIELD               VALUE       DECIDED BY                TO CHANGE IT
timeout             1m          the system defaults       set `timeout` under `[settings]`, up to `5m`
session_time        1h          the system defaults       set `session_time` under `[settings]`, up to `24h`
cpu_time            1m          the system defaults       set `cpu_time` under `[settings]`, up to `20m`
memory              512M        the preset of tier `low`  declare a lower `tier`
pids                256         the system defaults       set `pids` under `[settings]`, up to `512`
cpus                1           the system defaults       set `cpus` under `[settings]`, up to `4`
disk                1G          the system defaults       set `disk` under `[settings]`, up to `10G`
files               100000      the system defaults       set `files` under `[settings]`, up to `1000000`
stdout              1M          the system defaults       set `stdout` under `[settings]`, up to `10M`
stderr              1M          the system defaults       set `stderr` under `[settings]`, up to `10M`
artifacts           50M         the system defaults       set `artifacts` under `[settings]`, up to `200M`
open_files          1024        the system defaults       set `open_files` under `[settings]`, up to `65536`
gpus                0           the system defaults       raise `gpus` under `[ceilings]` and set it under `[settings]`
tpus                0           the system defaults       raise `tpus` under `[ceilings]` and set it under `[settings]`
egress_bytes        256M        the system defaults       set `egress_bytes` under `[settings]`, up to `1G`
egress_connections  2000        the system defaults       set `egress_connections` under `[settings]`, up to `10000`
network_time        1h          the system defaults       set `network_time` under `[settings]`, up to `24h`
network             none        the system defaults       set `network` under `[settings]`
allow_net           nothing     the system defaults       set `network = \"allowlist\"` and `allow_net` under `[settings]`
workspace           ro          space `local` (g.toml:6)  change `workspace` at `g.toml:6`
env_allow           *           the system defaults       set `env_allow` under `[settings]`
tier                low         the request               the request may go as far as `safe`
security            strict      the system defaults       set `security` under `[settings]`
limits_demand       supervised  the system defaults       set `limits_demand` under `[settings]`
approval            cowork      the system defaults       set `approval` under `[settings]`
require             -           the system defaults       the request, or any layer, may state `require`
backend             -           the system defaults       the request, or any layer, may state `backend`
runtime             -           the system defaults       the request, or any layer, may state `runtime`
image               -           the system defaults       the request, or any layer, may state `image`
env.LANG            set         the settings (g.toml:4)   change `env.LANG` at `g.toml:4`
";
    assert_eq!(explanation.render_text(), expected);
}

#[test]
fn a_refused_call_shows_the_reason_the_line_and_the_ways_out() {
    let config = Config::parse("[settings]\npids = 8\n", "g.toml").unwrap();
    let asked = call(limit("pids", "9"));
    let layers = config.layers_for(&asked.ids);
    let error = run(asked, &layers).unwrap_err();
    let explanation = Explanation::of(Err(&error));
    assert_eq!(
        explanation.render_text(),
        "\
decision: deny
reason: `pids` `9` is more than the settings allow, which is `8`
  --> g.toml:2
hint: ask for `8` or less
hint: change `pids` at `g.toml:2`
hint: `--on-exceed cap` (in a request `on_exceed: cap`) runs with what is allowed and reports it in `capped`
"
    );
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["decision"], "deny");
    assert_eq!(json["code"], "policy_denied");
    assert_eq!(json["rule"]["line"], 2);
}

#[test]
fn the_json_of_a_field_is_flat() {
    let layers = [Layer::agent("bot", limit("pids", "8"))];
    let assessed = run(call(silent()), &layers).unwrap();
    let json = serde_json::to_value(Explanation::of(Ok(&assessed))).unwrap();
    let fields = json["fields"].as_array().unwrap();
    let pids = fields.iter().find(|it| it["field"] == "pids").unwrap();
    assert_eq!(
        *pids,
        serde_json::json!({
            "field": "pids", "path": "limits.pids", "value": "8", "layer": "agent",
            "subject": "bot", "change": "change `pids` of agent `bot`",
        })
    );
}

fn plan(call: Call) -> String {
    let assessed: Assessed = run(call, &[]).unwrap();
    assessed.canonical_json().unwrap()
}

#[test]
fn the_same_plan_has_the_same_text_and_any_change_another() {
    let base = || with_env(&[("A", "1"), ("B", "2")]);
    let mut reordered = base();
    reordered.env.reverse();
    assert_eq!(plan(base()), plan(reordered));

    let changes: [fn(&mut Call); 8] = [
        |it| it.env[0] = variable("A", "other"),
        |it| it.env.truncate(1),
        |it| it.cwd = ByteString::new(&b"sub"[..]),
        |it| it.workspace = WorkspaceRef::Project("p".parse().unwrap()),
        |it| {
            it.inputs.push(Input {
                path: ByteString::new(&b"f"[..]).unwrap(),
                content: vec![0, 255],
            });
        },
        |it| it.overrides = limit("memory", "64M"),
        |it| it.ids.user_id = Some("dana".to_owned()),
        |it| {
            it.program = glovebox_model::Program::Shell {
                script: ByteString::new(&b"true"[..]).unwrap(),
            };
        },
    ];
    let mut seen = vec![plan(base())];
    for change in changes {
        let mut changed = base();
        change(&mut changed);
        let text = plan(changed);
        assert!(!seen.contains(&text), "{text}");
        seen.push(text);
    }
}

#[test]
fn a_changed_policy_changes_the_plan() {
    let under = |layers: &[Layer]| {
        run(call(silent()), layers)
            .unwrap()
            .canonical_json()
            .unwrap()
    };
    assert_ne!(under(&[]), under(&[Layer::settings(limit("pids", "8"))]));
}

#[test]
fn a_directory_name_that_is_no_text_is_bound_too() {
    use std::os::unix::ffi::OsStringExt;
    let of = |bytes: &[u8]| {
        let path = std::ffi::OsString::from_vec(bytes.to_vec());
        plan(Call {
            workspace: WorkspaceRef::Adopted(path.into()),
            ..call(silent())
        })
    };
    assert_ne!(of(b"/a\xff"), of(b"/a\xfe"));
}
