//! The same for JavaScript. Node's own frames lie below the program's in its traces, and are not
//! compared.

use glovebox_backend::Language;

use crate::house::{Rooms, Yard, input, text};
use crate::warm::python::{both_ways, program_of, roomy};

const PROGRAMS: [&str; 23] = [
    "console.log(1)",
    "",
    "console.log(process.argv, process.execArgv, process.argv0, process.title)",
    "console.log(process.env)",
    "console.log(process.cwd(), __filename, __dirname, module.id, module.filename, module.paths, require.main)",
    "console.log(Object.keys(globalThis).sort().join())",
    "const fs = require('fs'); let x = 1; var y = 2; console.log(typeof fs.readFileSync, globalThis.y, globalThis.x)",
    "console.log(require('./own'), require.resolve('./own'))",
    "eval('imp' + 'ort(\"./own.mjs\")').then((own) => console.log(own.x, own.url))",
    "throw new Error('no')",
    "function f() { null.x; }\nfunction g() { f(); }\ng();",
    "throw 'a string'",
    "let a = ;",
    "Promise.reject(new Error('later'))",
    "process.exit(7)",
    "process.exitCode = 3; console.error('err'); console.log('out')",
    "process.on('exit', (code) => console.log('bye', code)); setTimeout(() => console.log('late'), 20)",
    "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 1000)",
    "console.log(require('child_process').execSync('env; pwd; cat').toString())",
    "console.log(require('fs').readFileSync(0, 'utf8'), require('fs').fstatSync(0).isFIFO())",
    "process.stdin.on('data', (data) => console.log(String(data))); process.stdin.on('end', () => console.log('end')); console.log(process.stdin.constructor.name)",
    "console.log(process.stdout.constructor.name, process.stdout.isTTY, process.stdout.fd, process.stderr.fd, '\u{e4}\u{1f600}')",
    "'use strict'; try { undeclared = 1 } catch (error) { console.log(error.name) }",
];

fn without_own_frames(text: &str) -> String {
    let own = |line: &str| {
        line.starts_with("    at ") && (line.contains("node:") || line.contains("[eval]-wrapper"))
    };
    let lines: Vec<&str> = text.lines().filter(|line| !own(line)).collect();
    lines.join("\n")
}

/// The one version that is known to the runner, where a sandbox finds it.
fn is_known_node_there() -> bool {
    let asked = std::process::Command::new("/usr/bin/node")
        .arg("--version")
        .output();
    asked.is_ok_and(|it| it.stdout.starts_with(b"v20."))
}

pub(crate) fn a_node_program_cannot_tell() {
    if !is_known_node_there() {
        println!("SKIPPED: there is no Node 20 at /usr/bin/node");
        return;
    }
    let yard = Yard::new();
    let profile = roomy();
    let rooms = Rooms::new(&yard.house, "a");
    let work = rooms.path("work");
    std::fs::write(work.join("own.js"), "module.exports = 'mine';\n").unwrap();
    let own = "export const x = 1, url = import.meta.url;\n";
    std::fs::write(work.join("own.mjs"), own).unwrap();
    for code in PROGRAMS {
        for with_input in [false, true] {
            let mut order = program_of(Language::Node, code);
            order.env.push((text("OWN"), text("välue")));
            let stdin = || with_input.then(|| input(b"typed"));
            let [cold, warm] = both_ways(&yard, &profile, &rooms, &order, stdin);
            assert_eq!(cold.ended.ending, warm.ended.ending, "{code}\n{warm:?}");
            assert_eq!(cold.stdout, warm.stdout, "{code}\n{}", warm.stderr);
            let [cold, warm] = [cold, warm].map(|it| without_own_frames(&it.stderr));
            assert_eq!(cold, warm, "{code}");
        }
    }
}
