//! How long one decision takes with 10, 100, 1,000 and 10,000 rules.
//! `cargo run --release -p glovebox-policy --example decide_speed`

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use glovebox_model::{ByteString, Call, Correlation, Program, SpaceId, WorkspaceRef};
use glovebox_policy::{
    Config, DecisionContext, HostFacts, Surface, assess, decide_reading, resolve,
};

const ROUNDS: u32 = 2000;

fn main() -> Result<(), Box<dyn Error>> {
    let script = "git status -s | head; program7 --all /workspace/work/a; make test";
    let program = Program::Shell {
        script: ByteString::try_from(script)?,
    };
    let reading = glovebox_risk::read(&program);
    let mut out = std::io::stdout().lock();
    for count in [10, 100, 1000, 10_000] {
        let start = Instant::now();
        let config = Config::parse(&rules(count), "rules.toml")?;
        let read = start.elapsed();
        let call = call(program.clone());
        let ids = call.ids.clone();
        let host = HostFacts {
            memory_bytes: 16 << 30,
            cpus: 8,
        };
        let system = config.system(Surface::Server, host)?;
        let assessed = assess(resolve(call, &system, &config.layers_for(&ids))?);
        let (rules, tools) = (config.rules_for(&ids), config.tools_for(&ids));
        let standing = DecisionContext {
            rules: &rules,
            tool: "run_command",
            tools: &tools,
            grants: &[],
            approvals: config.approvals(),
            simulate: false,
            backend: None,
            secrets: &[],
            network: config.network(),
        };
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(decide_reading(black_box(&assessed), &reading, &standing));
        }
        let each = start.elapsed() / ROUNDS;
        writeln!(
            out,
            "{count:>6} rules: decided in {:>8.1} µs, file read in {:>8.1} ms",
            each.as_secs_f64() * 1e6,
            read.as_secs_f64() * 1e3
        )?;
    }
    Ok(())
}

/// As people write them: most name programs, some paths, hosts and tools, a few are expressions.
fn rules(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let matcher = match at % 10 {
            0..=5 => format!("command = \"program{at} *\""),
            6 => format!("path = \"/srv/data{at}/**\""),
            7 => format!("host = \"*.host{at}.example:443\""),
            8 => format!("tool = \"tool{at}\""),
            _ if at % 100 == 99 => format!("when = \"agent == 'agent{at}'\""),
            _ => format!("command = \"git verb{at} *\""),
        };
        let decision = ["deny", "ask", "allow"][at % 3];
        let _ = writeln!(text, "[[rule]]\ndecision = \"{decision}\"\n{matcher}");
    }
    text
}

fn call(program: Program) -> Call {
    Call::new(
        Correlation::of_space(SpaceId::local()),
        glovebox_model::Vouched::People,
        WorkspaceRef::Scratch,
        program,
    )
}
