//! Ways to say "run this script": each names `lib.sh`, or is told to run anything.

use glovebox_model::Program;
use glovebox_risk::{Runs, runs, runs_script};

use super::{argv, bytes, shell};

/// Each really runs `lib.sh` somewhere, by some shell or tool.
const SCRIPTS: &[&str] = &[
    "sh lib.sh",
    "sh ./lib.sh",
    "bash lib.sh arg",
    "dash -e lib.sh",
    "./lib.sh",
    "./lib.sh && true",
    "true; sh lib.sh",
    "cat x | sh lib.sh",
    "sh < lib.sh",
    "sh 0<lib.sh",
    "sh <lib.sh -s",
    "bash -c \"$(<lib.sh)\"",
    "bash -c \"$(cat lib.sh)\"",
    "eval \"`cat lib.sh`\"",
    "f=lib.sh; sh $f",
    "sh li*.sh",
    "sh li?.sh",
    "sh l[i]b.sh",
    "sh {lib.sh,x}",
    "sh li''b.sh",
    "sh \"lib.sh\"",
    "sh l\\ib.sh",
    "sh $'lib.sh'",
    "sh $'\\x6cib.sh'",
    "sh ~/../../workspace/work/lib.sh",
    "sh <<E\n. ./lib.sh\nE",
    "sh <<'E'\nsh lib.sh\nE",
    "sh <<< '. ./lib.sh'",
    "cat lib.sh | sh",
    "cat lib.sh | bash -s",
    "cat lib.sh | bash /dev/stdin",
    "sh /dev/fd/3 3<lib.sh",
    "sh <(cat lib.sh)",
    "sh /proc/self/cwd/lib.sh",
    "sh /proc/$$/cwd/lib.sh",
    "sh /workspace/work/lib.sh",
    "/workspace/work/lib.sh",
    "sh ../work/lib.sh",
    "cd sub; sh ../lib.sh",
    "cd sub && sh lib.sh",
    "pushd sub; sh lib.sh",
    ". ./lib.sh",
    "source lib.sh",
    "command . ./lib.sh",
    "builtin source ./lib.sh",
    "exec sh lib.sh",
    "command sh lib.sh",
    "env sh lib.sh",
    "env -S 'sh lib.sh'",
    "env -C sub sh lib.sh",
    "env BASH_ENV=lib.sh bash -c true",
    "BASH_ENV=lib.sh bash -c true",
    "ENV=./lib.sh sh -ic true",
    "PATH=.:$PATH lib.sh",
    "alias ls=./lib.sh; ls",
    "ls() { sh lib.sh; }; ls",
    "hash -p ./lib.sh ls; ls",
    "BASH_CMDS=(ls ./lib.sh); ls",
    "trap 'sh lib.sh' EXIT",
    "trap 'sh lib.sh' DEBUG; true",
    "RANDOM='a[$(sh lib.sh)]'",
    "printf -v 'a[$(sh lib.sh)]' x",
    "test -v 'a[$(sh lib.sh)]'",
    "[[ -n $(sh lib.sh) ]]",
    "[[ a || sh lib.sh ]]",
    "(( ./lib.sh ))",
    "((a[$(sh lib.sh)]))",
    "echo $((a[$(sh lib.sh)]))",
    "x+=/../lib.sh",
    "ls &>/dev/null ./lib.sh",
    "ls & sh lib.sh",
    "{ sh lib.sh; }",
    "(sh lib.sh)",
    "! sh lib.sh",
    "if sh lib.sh; then :; fi",
    "for f in lib.sh; do sh $f; done",
    "while ! sh lib.sh; do :; done",
    "case a in a) sh lib.sh;; esac",
    "coproc sh lib.sh",
    "time sh lib.sh",
    "sh -c 'sh lib.sh'",
    "sh -c 'sh -c \"sh lib.sh\"'",
    "sh -c \"$0\" 'sh lib.sh'",
    "sh -c 'sh $1' sh lib.sh",
    "bash --rcfile lib.sh -i -c true",
    "bash --init-file lib.sh -i",
    "bash -O extglob lib.sh",
    "bash +x lib.sh",
    "find . -name lib.sh -exec sh {} ';'",
    "find lib.sh -execdir {} +",
    "find . -ok sh lib.sh ';'",
    "echo lib.sh | xargs sh",
    "xargs -a x sh lib.sh",
    "busybox sh lib.sh",
    "busybox ash lib.sh",
    "zsh lib.sh",
    "ksh lib.sh",
    "timeout 5 sh lib.sh",
    "timeout -k 1 5 nice -n 3 sh lib.sh",
    "setsid -w sh lib.sh",
    "setsid --fork sh lib.sh",
    "nice sh lib.sh",
    "nohup sh lib.sh",
    "stdbuf -oL sh lib.sh",
    "taskset 1 sh lib.sh",
    "flock x sh lib.sh",
    "unshare -r sh lib.sh",
    "chroot . sh lib.sh",
    "script -c 'sh lib.sh' /dev/null",
    "strace -f sh lib.sh",
    "gdb -batch -ex 'shell sh lib.sh'",
    "/lib64/ld-linux-x86-64.so.2 /bin/sh lib.sh",
    "/usr/lib/../../bin/sh lib.sh",
    "run-parts --regex lib .",
    "watch sh lib.sh",
    "parallel sh ::: lib.sh",
    "awk 'BEGIN{system(\"sh lib.sh\")}'",
    "awk -f x.awk",
    "sed '1e sh lib.sh' x",
    "sed -n 's/.*/sh lib.sh/e' x",
    "perl -e 'system \"sh lib.sh\"'",
    "python3 -c 'import os; os.system(\"sh lib.sh\")'",
    "python3 -m json.tool x",
    "python3 x.py",
    "node -e 'require(\"child_process\").execSync(\"sh lib.sh\")'",
    "ruby -e '`sh lib.sh`'",
    "lua -e 'os.execute(\"sh lib.sh\")'",
    "php -r 'system(\"sh lib.sh\");'",
    "git -c alias.x='!sh lib.sh' x",
    "git status",
    "git -c core.fsmonitor='sh lib.sh' status",
    "make",
    "pytest",
    "npm test",
    "cargo build",
    "tar --to-command='sh lib.sh' -xf x",
    "tar --checkpoint=1 --checkpoint-action=exec='sh lib.sh' -cf /dev/null x",
    "sort --compress-program=./lib.sh x",
    "sort --comp=./lib.sh x",
    "sort -o lib.sh x",
    "split --filter='sh lib.sh' x",
    "rg --pre ./lib.sh x",
    "rg --pre=./lib.sh x",
    "rg -z x",
    "ag --pager ./lib.sh x",
    "ag --pag=./lib.sh x",
    "ack --pager=./lib.sh x",
    "less +'!sh lib.sh' x",
    "less x",
    "more x",
    "man -P ./lib.sh ls",
    "vi -c '!sh lib.sh' -c q",
    "vim -es -c '!sh lib.sh' -c q",
    "emacs --batch --eval '(shell-command \"sh lib.sh\")'",
    "echo '!sh lib.sh' | ed",
    "echo '!sh lib.sh' | dc",
    "echo 'x' | bc lib.bc",
    "echo 'syscmd(sh lib.sh)' | m4",
    "expect -c 'spawn sh lib.sh'",
    "ssh -o ProxyCommand='sh lib.sh' x",
    "socat - EXEC:'sh lib.sh'",
    "gcc -wrapper sh,lib.sh x.c",
    "gcc @args",
    "openssl engine ./x.so",
    "file -C -m x",
    "file -z x",
    "tree -R -H . -L 1 -o x",
    "zip -TT 'sh lib.sh' -T x",
    "crontab x",
    "at now -f lib.sh",
    "batch < lib.sh",
    "logsave x sh lib.sh",
    "ssh-agent -a x sh lib.sh",
    "fakechroot sh lib.sh",
    "proot -q x sh lib.sh",
    "cp evil lib.sh; sh lib.sh",
    "ln -sf evil lib.sh && ./lib.sh",
    "echo 'sh lib.sh' | tee y | sh",
    "echo x >lib.sh; sh lib.sh",
    "sh lib.sh\\\n",
    "sh lib\\\n.sh",
    "#\\\nsh lib.sh",
    "'sh' 'lib.sh'",
    "2>/dev/null sh lib.sh",
    "sh 2>/dev/null lib.sh",
    "sh lib.sh>/dev/null",
    "sh \u{200b}lib.sh",
    "sh\tlib.sh",
    "sh lib.sh\r",
];

fn is_told(found: &Runs) -> bool {
    match found {
        Runs::Anything { .. } => true,
        Runs::Only(scripts) => scripts.iter().any(|it| it.ends_with("lib.sh")),
    }
}

#[test]
fn every_spelling_names_the_script_or_is_anything() {
    let mut untold = Vec::new();
    for script in SCRIPTS {
        let all = [
            shell(script),
            argv(&["sh", "-c", script]),
            argv(&["bash", "-ec", script]),
        ];
        untold.extend(
            all.iter()
                .map(runs)
                .filter(|it| !is_told(it))
                .map(|it| (script, it)),
        );
        // A script that says so is no other thing.
        let within = runs_script(script.as_bytes());
        untold.extend((!is_told(&within)).then_some((script, within)));
    }
    assert!(untold.is_empty(), "{untold:#?}");
}

#[test]
fn what_is_certain_is_exact() {
    for (script, expected) in [
        ("sh lib.sh", &["lib.sh"][..]),
        (
            "sh -eu ./lib.sh a 'b c' && ./x/y.sh | cat",
            &["./lib.sh", "./x/y.sh"],
        ),
        (
            "timeout 5 env CI=1 nice -n 3 bash -c 'sh lib.sh; sh lib.sh'",
            &["lib.sh"],
        ),
        ("/usr/bin/sh lib.sh # sh other.sh\n\n# more", &["lib.sh"]),
        ("ls -la | grep foo > /dev/null 2>&1; cat x", &[]),
        ("[ -f x ] && cat x || echo 'no $x'", &[]),
        ("cp a b && rm -r c", &[]),
        ("cd sub && ls", &[]),
        ("find . -name '*.rs' -type f | sort -u | head -3", &[]),
    ] {
        let expected = Runs::Only(expected.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(runs(&shell(script)), expected, "{script}");
        assert_eq!(runs(&argv(&["sh", "-c", script])), expected, "{script}");
    }
    assert_eq!(
        runs(&argv(&["./lib.sh", "$x"])),
        Runs::Only(vec!["./lib.sh".to_owned()])
    );
    assert_eq!(runs(&argv(&["cat", "$x"])), Runs::Only(Vec::new()));
    for program in [
        Program::Python { code: bytes("1") },
        Program::Javascript { code: bytes("1") },
        argv(&["python3", "x.py"]),
        argv(&["sh"]),
        argv(&["sh", "-s", "lib.sh"]),
        argv(&["sh", "-"]),
    ] {
        assert!(
            matches!(runs(&program), Runs::Anything { .. }),
            "{program:?}"
        );
    }
}

#[test]
fn a_login_shell_that_may_find_a_written_home_is_anything() {
    for script in [
        "cp lib.sh /home/sandbox/.bash_logout; exit 0",
        "cat lib.sh | tee /home/sandbox/.bash_logout; exit 0",
        "cp lib.sh /home/sandbox/.bash_profile; bash -lc 'touch a'",
        "ln -s /workspace/work/lib.sh /home/sandbox/.profile && bash -lc true",
        "cp -r . h; bash --login -c true",
        "true; timeout 5 sh -lc ls",
        "sh -c 'dash -lc ls'",
    ] {
        let found = runs(&shell(script));
        assert!(matches!(found, Runs::Anything { .. }), "{script} {found:?}");
    }
    for program in [shell("ls"), argv(&["bash", "-lc", "touch a"])] {
        assert_eq!(runs(&program), Runs::Only(Vec::new()), "{program:?}");
    }
}

#[test]
fn a_script_file_is_read_as_what_it_is() {
    let only = |it: &[&str]| Some(it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    for (source, expected) in [
        ("#!/bin/sh\nsh b.sh\n", only(&["b.sh"])),
        (
            "#!/usr/bin/env bash\nset -euo pipefail\necho done\n",
            only(&[]),
        ),
        ("#!/usr/bin/env python3\nprint\n", None),
        ("#!/bin/sh -i\n", None),
        ("#!./mine\n", None),
        // A shell reads its script while it runs.
        ("cp evil lib.sh\n", None),
        ("rm x\n", None),
        ("\u{7f}ELF", None),
        ("make\n", None),
    ] {
        let found = match runs_script(source.as_bytes()) {
            Runs::Only(scripts) => Some(scripts),
            Runs::Anything { .. } => None,
        };
        assert_eq!(found, expected, "{source:?}");
    }
    assert!(matches!(runs_script(b"echo \xff"), Runs::Anything { .. }));
}
