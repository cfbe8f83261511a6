//! Scripts and vectors with the commands that they run and what cannot be told, by hand.

use glovebox_risk::Unclear::{self, *};
use glovebox_risk::{Direction, read};

use super::{argv, commands, shell};

type Row = (&'static str, &'static [&'static str], &'static [Unclear]);

const SCRIPTS: &[Row] = &[
    // Lists, pipelines, groups.
    ("ls", &["ls"], &[]),
    ("", &[], &[]),
    ("# only a comment", &[], &[]),
    ("ls -la /tmp # and why", &["ls -la /tmp"], &[]),
    ("ls; id", &["ls", "id"], &[]),
    ("ls;id&&pwd||rm x", &["ls", "id", "pwd", "rm x"], &[]),
    ("sleep 1 & id", &["sleep 1", "id"], &[]),
    ("a\nb\n\nc", &["a", "b", "c"], &[]),
    ("a | b |& c", &["a", "b", "c"], &[]),
    ("a |\n b", &["a", "b"], &[]),
    ("a &&\n b", &["a", "b"], &[]),
    ("! a", &["a"], &[]),
    ("time -p a | b", &["a", "b"], &[]),
    ("(a; b)", &["a", "b"], &[]),
    ("( (a); (b) )", &["a", "b"], &[]),
    ("((a); b)", &["a", "b"], &[]),
    ("{ a; b; }", &["a", "b"], &[]),
    ("a\\\nb", &["ab"], &[]),
    ("r\\\nm x", &["rm x"], &[]),
    ("ls \\\n -l", &["ls -l"], &[]),
    // Compound commands.
    (
        "if a; then b; elif c; then d; else e; fi",
        &["a", "b", "c", "d", "e"],
        &[],
    ),
    ("while a; do b; done", &["a", "b"], &[]),
    ("until a; do b; done", &["a", "b"], &[]),
    ("for x in 1 2; do b $x; done", &["b <$x>"], &[]),
    ("for x\ndo b; done", &["b"], &[]),
    ("for ((;;)); do b; done", &["b"], &[]),
    ("for ((i=0;i<3;i++)); do b; done", &["b"], &[Evaluation]),
    ("for x in $(a); do b; done", &["a", "b"], &[Substitution]),
    ("select x in a; do b; done", &["b"], &[]),
    (
        "case $x in a|b) c;; (d) e;& *) f; esac",
        &["c", "e", "f"],
        &[],
    ),
    ("case x in a) ;; esac; id", &["id"], &[]),
    ("[[ -f x && $y == z ]] && id", &["id"], &[]),
    ("[[ x =~ ^(a|b)$ ]] && id", &["id"], &[]),
    ("[[ $x -eq 1 ]]", &[], &[Evaluation]),
    ("[[ -n $(id) ]]", &["id"], &[Substitution]),
    ("coproc a b", &["a b"], &[]),
    ("coproc N { a; }", &["a"], &[]),
    ("f() { id; }; f", &["id", "f"], &[Definition]),
    ("function f { id; }", &["id"], &[Definition]),
    ("ls() { rm x; }\nls", &["rm x", "ls"], &[Definition]),
    ("echo if then done", &["echo if then done"], &[]),
    ("echo }", &["echo }"], &[]),
    // Words.
    ("r''m x", &["rm x"], &[]),
    ("\"r\"m x", &["rm x"], &[]),
    ("\\rm x", &["rm x"], &[]),
    ("'r'\"m\" x", &["rm x"], &[]),
    ("$'\\x72\\155' x", &["rm x"], &[]),
    ("$'r\\u006d' x", &["rm x"], &[]),
    ("$'\\xff'", &["<$'\\xff'>"], &[Name]),
    ("echo 'a b' \"c d\" e\\ f", &["echo a b c d e f"], &[]),
    ("echo \"a\\\"b\\$c\\d\"", &["echo a\"b$c\\d"], &[]),
    ("echo a#b", &["echo a#b"], &[]),
    ("echo ''", &["echo "], &[]),
    ("{rm,-rf,/}", &["rm -rf /"], &[]),
    ("echo a{b,c}d", &["echo abd acd"], &[]),
    ("echo {1..3}", &["echo <{1..3}>"], &[]),
    ("echo {a,{b,c}}", &["echo <{a,{b,c}}>"], &[]),
    ("echo {} {a}", &["echo {} {a}"], &[]),
    ("{r,}m x", &["rm m x"], &[]),
    ("ls ~/x", &["ls <~/x>"], &[]),
    ("ls *.c", &["ls <*.c>"], &[]),
    ("/bin/r? x", &["</bin/r?> x"], &[Name]),
    ("[ -f x ]", &["[ -f x ]"], &[]),
    ("$x y", &["<$x> y"], &[Name]),
    ("r${x}m y", &["<r${x}m> y"], &[Name]),
    ("rm$IFS-rf$IFS/", &["<rm$IFS-rf$IFS/>"], &[Name]),
    ("rm${IFS}x", &["<rm${IFS}x>"], &[Name]),
    (
        "echo $HOME ${x:-y} $1 $@ $?",
        &["echo <$HOME> <${x:-y}> <$1> <$@> <$?>"],
        &[],
    ),
    ("echo $", &["echo $"], &[]),
    ("echo \"$x\"", &["echo <\"$x\">"], &[]),
    ("echo $\"x\"", &["echo <$\"x\">"], &[]),
    ("/usr/bin/../bin/rm x", &["/usr/bin/../bin/rm x"], &[]),
    // Substitutions.
    ("echo $(id)", &["id", "echo <$(id)>"], &[Substitution]),
    ("echo `id`", &["id", "echo <`id`>"], &[Substitution]),
    (
        "echo `echo \\`id\\``",
        &["id", "echo <`id`>", "echo <`echo \\`id\\``>"],
        &[Substitution],
    ),
    (
        "echo \"$(a \"$(b)\")\"",
        &["b", "a <\"$(b)\">", "echo <\"$(a \"$(b)\")\">"],
        &[Substitution, Substitution],
    ),
    (
        "echo \"a)\" $(echo \"b)\")",
        &["echo b)", "echo a) <$(echo \"b)\")>"],
        &[Substitution],
    ),
    (
        "diff <(a) >(b)",
        &["a", "b", "diff <<(a)> <>(b)>"],
        &[Substitution, Substitution],
    ),
    (
        "echo ${x:-$(id)}",
        &["id", "echo <${x:-$(id)}>"],
        &[Substitution],
    ),
    ("echo $((1+2))", &["echo <$((1+2))>"], &[]),
    ("echo $((x))", &["echo <$((x))>"], &[Evaluation]),
    (
        "echo $(( $(id) ))",
        &["id", "echo <$(( $(id) ))>"],
        &[Substitution, Evaluation],
    ),
    ("(( a[$(id)] ))", &["id"], &[Substitution, Evaluation]),
    ("a[$(id)]=1", &["id"], &[Substitution, Evaluation]),
    ("a[1];rm x;b[2]=3", &["<a[1]>", "rm x"], &[Name]),
    ("echo ${x@P}", &["echo <${x@P}>"], &[Evaluation]),
    ("echo ${a[x]}", &["echo <${a[x]}>"], &[Evaluation]),
    ("echo ${a[@]} ${a[0]}", &["echo <${a[@]}> <${a[0]}>"], &[]),
    ("x=$(id)", &["id"], &[Substitution]),
    ("x=(a $(id))", &["id"], &[Substitution]),
    ("$\\\n(id)", &["id"], &[Syntax]),
    // Here-documents.
    ("cat <<E\nrm x\nE\nid", &["cat", "id"], &[]),
    ("cat <<A <<B\n1\nA\n2\nB\nid", &["cat", "id"], &[]),
    ("cat <<E\n$(id)\nE", &["cat", "id"], &[Substitution]),
    ("cat <<'E'\n$(id)\nE\nls", &["cat", "ls"], &[]),
    ("cat <<E\"O\"F\n$(id)\nEOF\nls", &["cat", "ls"], &[]),
    ("cat <<\\E\n`id`\nE", &["cat"], &[]),
    ("cat <<-E\n\tx\n\tE\nls", &["cat", "ls"], &[]),
    ("cat <<E | sh\nid\nE", &["cat", "sh"], &[Evaluation]),
    ("cat <<E; id\nx\nE\nls", &["cat", "id", "ls"], &[]),
    ("cat <<< 'a b'", &["cat"], &[]),
    // Wrappers.
    ("env A=1 rm x", &["rm x"], &[]),
    ("/usr/bin/env -i -u B -C /tmp rm x", &["rm x"], &[]),
    ("env -S 'rm -rf' x", &["rm -rf x"], &[]),
    ("env LD_PRELOAD=x ls", &["ls"], &[Environment]),
    (
        "env --weird rm x",
        &["env --weird rm x", "<…> rm x", "rm x"],
        &[Name],
    ),
    ("nice -n 5 nohup timeout -k 1 5s rm x", &["rm x"], &[]),
    ("nice -10 ionice -c2 -n7 rm x", &["rm x"], &[]),
    ("stdbuf -oL setsid -w rm x", &["rm x"], &[]),
    ("sudo -u root -E rm x", &["rm x"], &[]),
    ("sudo -- rm x", &["rm x"], &[]),
    ("doas rm x", &["rm x"], &[]),
    ("chroot /x rm y", &["rm y"], &[]),
    ("busybox rm x", &["rm x"], &[]),
    ("busybox sh -c 'rm x'", &["rm x"], &[]),
    ("toybox ls", &["ls"], &[]),
    (
        "command rm x; builtin echo y; exec ls",
        &["rm x", "echo y", "ls"],
        &[],
    ),
    ("command -v rm", &["command -v rm"], &[]),
    ("exec -a ls rm x", &["rm x"], &[]),
    ("strace -f -e trace=file rm x", &["rm x"], &[]),
    (
        "strace -o '|id' rm x",
        &["strace -o |id rm x", "<…> |id rm x", "|id rm x"],
        &[Name],
    ),
    // The command may begin at more than one word.
    (
        "setarch x86_64 rm x",
        &["setarch x86_64 rm x", "<…> x86_64 rm x", "rm x"],
        &[Name],
    ),
    (
        "bwrap --dev-bind / / rm x",
        &["bwrap --dev-bind / / rm x", "<…> / / rm x", "/ / rm x"],
        &[Name],
    ),
    (
        "env time -o out rm x",
        &["time -o out rm x", "<…> out rm x", "out rm x"],
        &[Name],
    ),
    ("capsh -- -c 'rm x'", &["capsh -- -c rm x"], &[Evaluation]),
    ("choom -n 0 rm x", &["rm x"], &[]),
    ("numactl -N 0 rm x", &["rm x"], &[]),
    ("uclampset -m 0 rm x", &["rm x"], &[]),
    ("ssh-agent -t 5 rm x", &["rm x"], &[]),
    ("logsave -a log rm x", &["rm x"], &[]),
    ("systemd-inhibit --what=idle rm x", &["rm x"], &[]),
    (
        "/lib/ld-2.31.so /bin/rm x",
        &["/lib/ld-2.31.so /bin/rm x", "/bin/rm x"],
        &[],
    ),
    // A wrapper or a shell of somebody's own may do anything.
    ("./nice rm x", &["./nice rm x", "rm x"], &[]),
    ("sub/sh -c ls", &["sub/sh -c ls", "ls"], &[]),
    ("/usr/bin/nice rm x", &["rm x"], &[]),
    ("chronic -v rm x", &["rm x"], &[]),
    ("ifne -n rm x", &["rm x"], &[]),
    ("fakechroot -s rm x", &["rm x"], &[]),
    ("proot -r /x rm x", &["rm x"], &[]),
    ("run0 --user=y rm x", &["rm x"], &[]),
    // Programs with a word that makes them run what follows.
    ("uv run rm x", &["rm x"], &[]),
    ("uv run -- nice rm x", &["rm x"], &[]),
    ("uv run a.py", &["uv run a.py"], &[]),
    ("uv sync", &["uv sync"], &[]),
    (
        "uv run --with a rm x",
        &["uv run --with a rm x", "<…> a rm x", "a rm x"],
        &[Name],
    ),
    (
        "uv --directory d run rm x",
        &["uv --directory d run rm x", "<…> d run rm x", "d run rm x"],
        &[Name],
    ),
    ("poetry run rm x", &["rm x"], &[]),
    ("pipenv run rm x", &["rm x"], &[]),
    ("bundle exec sh -c 'rm x'", &["rm x"], &[]),
    ("direnv exec . rm x", &["rm x"], &[]),
    ("npx rm x", &["rm x"], &[]),
    ("npm exec rm x", &["npm exec rm x", "rm x"], &[Interpreter]),
    (
        "perf stat -e cycles rm x",
        &["perf stat -e cycles rm x", "<…> cycles rm x", "cycles rm x"],
        &[Name],
    ),
    ("perf record rm x", &["rm x"], &[]),
    (
        "nix-shell -p a --run 'rm x'",
        &["nix-shell -p a --run rm x", "rm x"],
        &[],
    ),
    ("flock -n /l rm x", &["rm x"], &[]),
    ("flock /l -c 'rm x'", &["rm x"], &[]),
    ("unshare -rm --fork rm x", &["rm x"], &[]),
    ("nsenter -t 1 -m rm x", &["rm x"], &[]),
    ("taskset -c 0 chrt -f 1 rm x", &["rm x"], &[]),
    ("setpriv --reuid=1 rm x", &["rm x"], &[]),
    ("systemd-run --user --scope rm x", &["rm x"], &[]),
    (
        "/lib64/ld-linux-x86-64.so.2 --library-path /l /bin/rm x",
        &[
            "/lib64/ld-linux-x86-64.so.2 --library-path /l /bin/rm x",
            "/bin/rm x",
        ],
        &[],
    ),
    ("nice $x rm y", &["nice <$x> rm y", "<$x> rm y"], &[Name]),
    ("xargs rm", &["rm <…>"], &[]),
    ("xargs -0 -n1 -P 4 rm -f", &["rm -f <…>"], &[]),
    ("xargs -I{} cp {} /x", &["cp <{}> /x"], &[]),
    ("xargs -I % sh -c 'rm %'", &["sh -c <rm %>"], &[Evaluation]),
    ("xargs", &["xargs"], &[]),
    ("find . -name x", &["find . -name x"], &[]),
    (
        "find . -exec rm {} \\;",
        &["find . -exec rm {} ;", "rm <{}>"],
        &[],
    ),
    (
        "find . -exec rm {} + -ok mv {} y ';'",
        &["find . -exec rm {} + -ok mv {} y ;", "rm <{}>", "mv <{}> y"],
        &[],
    ),
    (
        "find . -execdir sh -c 'id' \\;",
        &["find . -execdir sh -c id ;", "id"],
        &[],
    ),
    (
        "watch -n 2 'ls | wc'",
        &["watch -n 2 ls | wc", "ls", "wc"],
        &[],
    ),
    ("trap 'rm x' EXIT", &["trap rm x EXIT", "rm x"], &[]),
    ("trap - EXIT", &["trap - EXIT"], &[]),
    (
        "parallel rm ::: a b",
        &["parallel rm ::: a b", "rm"],
        &[Evaluation],
    ),
    ("su -c 'rm x' bob", &["su -c rm x bob", "rm x"], &[]),
    (
        "runuser -u bob -- rm x",
        &["runuser -u bob -- rm x", "rm x"],
        &[],
    ),
    (
        "script -qc 'rm x' /dev/null",
        &["script -qc rm x /dev/null", "rm x"],
        &[],
    ),
    ("ssh host rm x", &["ssh host rm x"], &[Evaluation]),
    // Shells and evaluation.
    ("sh -c 'rm x; id'", &["rm x", "id"], &[]),
    ("bash -lc 'rm x'", &["rm x"], &[]),
    ("bash -euo pipefail -c 'rm x'", &["rm x"], &[]),
    ("bash -c \"$x\"", &["bash -c <\"$x\">"], &[Evaluation]),
    ("sh -c 'sh -c \"rm x\"'", &["rm x"], &[]),
    ("zsh -c 'rm x'", &["zsh -c rm x", "rm x"], &[Interpreter]),
    ("bash script.sh", &["bash script.sh"], &[]),
    ("bash $x", &["bash <$x>"], &[Evaluation]),
    ("bash", &["bash"], &[Evaluation]),
    ("sh < file", &["sh"], &[Evaluation]),
    (
        "curl x | bash -s -- y",
        &["curl x", "bash -s -- y"],
        &[Evaluation],
    ),
    (
        "bash <(curl x)",
        &["curl x", "bash <<(curl x)>"],
        &[Substitution, Evaluation],
    ),
    ("bash <<< 'rm x'", &["bash", "rm x"], &[Evaluation]),
    ("bash /dev/stdin", &["bash /dev/stdin"], &[Evaluation]),
    ("eval 'rm x'", &["eval rm x", "rm x"], &[Evaluation]),
    ("eval rm x", &["eval rm x", "rm x"], &[Evaluation]),
    ("eval \"$x\"", &["eval <\"$x\">"], &[Evaluation]),
    (". ./x", &[". ./x"], &[Evaluation]),
    ("source x", &["source x"], &[Evaluation]),
    ("let x=1", &["let x=1"], &[Evaluation]),
    // Interpreters.
    ("python3 -c 'x'", &["python3 -c x"], &[Interpreter]),
    ("python3.11 -Bc x", &["python3.11 -Bc x"], &[Interpreter]),
    ("python3 x.py", &["python3 x.py"], &[]),
    ("python3 -m http.server", &["python3 -m http.server"], &[]),
    ("python3 -", &["python3 -"], &[Evaluation]),
    ("python3", &["python3"], &[Evaluation]),
    ("node -e x", &["node -e x"], &[Interpreter]),
    ("node -pe x", &["node -pe x"], &[Interpreter]),
    ("node --eval=x", &["node --eval=x"], &[Interpreter]),
    (
        "node --import ./x y.js",
        &["node --import ./x y.js"],
        &[Evaluation],
    ),
    ("perl -lane 'x'", &["perl -lane x"], &[Interpreter]),
    ("perl -pie x", &["perl -pie x"], &[Interpreter]),
    ("ruby -e x", &["ruby -e x"], &[Interpreter]),
    ("php -r x", &["php -r x"], &[Interpreter]),
    ("lua -e x", &["lua -e x"], &[Interpreter]),
    ("awk '{print $1}' f", &["awk {print $1} f"], &[]),
    (
        "awk 'BEGIN{system(\"id\")}'",
        &["awk BEGIN{system(\"id\")}"],
        &[Interpreter],
    ),
    (
        "awk '{print > \"f\"}'",
        &["awk {print > \"f\"}"],
        &[Interpreter],
    ),
    ("sed s/a/b/g f", &["sed s/a/b/g f"], &[]),
    ("sed -n 1,5p f", &["sed -n 1,5p f"], &[]),
    ("sed s/a/b/e f", &["sed s/a/b/e f"], &[Interpreter]),
    ("sed 1e\\ id f", &["sed 1e id f"], &[Interpreter]),
    ("sed 'w out' f", &["sed w out f"], &[Interpreter]),
    ("vim -c '!id' f", &["vim -c !id f"], &[Interpreter]),
    ("git status", &["git status"], &[]),
    (
        "git -c core.pager=x log",
        &["git -c core.pager=x log"],
        &[Interpreter],
    ),
    (
        "git -c alias.x='!id' x",
        &["git -c alias.x=!id x"],
        &[Interpreter],
    ),
    (
        "git -c color.ui=never log",
        &["git -c color.ui=never log"],
        &[],
    ),
    (
        "git bisect run sh x",
        &["git bisect run sh x"],
        &[Interpreter],
    ),
    ("tar xf a.tar", &["tar xf a.tar"], &[]),
    (
        "tar cf x y --checkpoint-action=exec=id",
        &["tar cf x y --checkpoint-action=exec=id"],
        &[Interpreter],
    ),
    (
        "tar xf x --to-command=id",
        &["tar xf x --to-command=id"],
        &[Interpreter],
    ),
    ("make SHELL=/x", &["make SHELL=/x"], &[Interpreter]),
    ("rg --pre id x", &["rg --pre id x"], &[Interpreter]),
    // Variables and definitions.
    ("A=1 ls", &["ls"], &[]),
    ("PATH=/x ls", &["ls"], &[Environment]),
    ("IFS=,", &[], &[Environment]),
    (
        "export LD_PRELOAD=/x",
        &["export LD_PRELOAD=/x"],
        &[Environment],
    ),
    ("BASH_ENV=x bash y", &["bash y"], &[Environment]),
    (
        "GIT_SSH_COMMAND=x git fetch",
        &["git fetch"],
        &[Environment],
    ),
    ("PA\\\nTH=/x ls", &["PATH=/x ls"], &[Name]),
    ("read PATH", &["read PATH"], &[Environment]),
    ("alias ls=rm", &["alias ls=rm"], &[Definition]),
    ("set -euo pipefail", &["set -euo pipefail"], &[]),
    // What is wrong.
    ("ls '", &[], &[Syntax]),
    ("ls \"$(", &[], &[Substitution, Syntax]),
    ("if a; then b", &["a", "b"], &[Syntax]),
    ("ls )", &["ls"], &[Syntax]),
    ("ls ) \n rm x", &["ls", "rm x"], &[Syntax]),
    ("echo @(a|b)", &[], &[Syntax]),
    ("ls <", &[], &[Syntax]),
    ("; ;", &[], &[Syntax, Syntax]),
];

#[test]
fn scripts_are_read_as_the_shell_reads_them() {
    let mut wrong = Vec::new();
    for (script, expected, blind) in SCRIPTS {
        let reading = read(&shell(script));
        let found = commands(&reading);
        let why: Vec<Unclear> = reading.blind.iter().map(|it| it.why).collect();
        if found != *expected || why != *blind {
            wrong.push(format!(
                "{script:?}\n  read {found:?} {why:?}\n  want {expected:?} {blind:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn vectors_are_unwrapped() {
    let rows: &[(&[&str], &[&str], &[Unclear])] = &[
        (&["rm", "-rf", "a b"], &["rm -rf a b"], &[]),
        (&["rm", "$x", "*"], &["rm $x *"], &[]),
        (&["sh", "-c", "ls; rm $x"], &["ls", "rm <$x>"], &[]),
        (&["env", "A=1", "bash", "-lc", "id"], &["id"], &[]),
        (&["python3", "-c", "x"], &["python3 -c x"], &[Interpreter]),
        (&["eval", "id"], &["eval id", "id"], &[Evaluation]),
        (&["xargs", "-n1", "rm"], &["rm <…>"], &[]),
    ];
    for (words, expected, blind) in rows {
        let reading = read(&argv(words));
        let why: Vec<Unclear> = reading.blind.iter().map(|it| it.why).collect();
        assert_eq!(commands(&reading), *expected, "{words:?}");
        assert_eq!(why, *blind, "{words:?}");
    }
}

#[test]
fn redirections_name_the_files_that_are_opened() {
    use Direction::{Append, Read, Write};
    let rows: &[(&str, &[(Direction, &str)])] = &[
        ("a > f", &[(Write, "f")]),
        ("a >f 2>&1", &[(Write, "f")]),
        ("a 2>f", &[(Write, "f")]),
        ("a {fd}>f", &[(Write, "f")]),
        ("a >> f", &[(Append, "f")]),
        ("a &>> f", &[(Append, "f")]),
        ("a &> f", &[(Write, "f")]),
        ("a >& f", &[(Write, "f")]),
        ("a >| f", &[(Write, "f")]),
        ("a <> f", &[(Read, "f"), (Write, "f")]),
        ("a < f", &[(Read, "f")]),
        ("> f", &[(Write, "f")]),
        ("> f a b", &[(Write, "f")]),
        ("{ a; b; } > f", &[(Write, "f")]),
        ("while a; do b; done < f", &[(Read, "f")]),
        ("(( 1 )) > f", &[(Write, "f")]),
        ("sh -c 'a' > f", &[(Write, "f")]),
        ("env a > f", &[(Write, "f")]),
        ("find . -fprintf f x", &[(Write, "f")]),
        ("a 2>&1 >&- <&3", &[]),
    ];
    for (script, expected) in rows {
        let reading = read(&shell(script));
        let all = reading.commands.iter().flat_map(|it| &it.redirects);
        let found: Vec<_> = all
            .map(|it| match &it.target {
                glovebox_risk::Word::Known(text) => (it.direction, text.as_str()),
                glovebox_risk::Word::Unknown(text) => panic!("{script}: {text}"),
            })
            .collect();
        assert_eq!(found, *expected, "{script:?}");
        assert!(reading.blind.is_empty(), "{script:?}: {:?}", reading.blind);
    }
}

#[test]
fn wrappers_and_places_are_kept() {
    let reading = read(&shell("ls\n  env nice rm x"));
    let last = reading.commands.last().unwrap();
    assert_eq!(last.through, ["env", "nice"]);
    assert_eq!((last.at.line, last.at.column), (2, 3));
    assert_eq!(last.source, "env nice rm x");
    let reading = read(&argv(&["sh", "-c", "a\n b"]));
    let last = reading.commands.last().unwrap();
    assert_eq!((last.at.line, last.at.column), (2, 2));
}

#[test]
fn what_is_too_large_is_blind() {
    let deep = |open: &str| open.repeat(50_000);
    let many = "ls;".repeat(5000);
    let long = "a".repeat(300 * 1024);
    let scripts = [
        deep("("),
        deep("$("),
        deep("{ "),
        deep("((a);"),
        deep("\"$("),
        deep("${x:-"),
        deep("if "),
        deep("f()"),
        deep("env "),
        deep("sh -c "),
        deep("case x in a) "),
        deep("a[ "),
        deep("$(("),
        many,
        long,
        deep("<("),
        deep("`a"),
        deep("<<a "),
        deep("eval "),
        deep("coproc "),
        deep("[[ ( "),
    ];
    for script in scripts {
        let reading = read(&shell(&script));
        let start = script.get(..20).unwrap();
        assert!(!reading.blind.is_empty(), "{start}");
        assert!(reading.commands.len() <= 4096, "{start}");
    }
    let nested = read(&shell(&"(".repeat(100)));
    assert!(nested.blind.iter().any(|it| it.why == TooLarge));
}

#[test]
fn code_that_names_nothing_of_os_but_paths_hides_no_command() {
    let fine = "import json, os
with open(os.path.join(os.environ['A'], 'x'), 'w') as file:
    json.dump(sorted(os.listdir('.')), file)
";
    let hides = |code: &str| {
        let code = glovebox_model::ByteString::try_from(code).unwrap();
        let reading = read(&glovebox_model::Program::Python { code });
        reading.blind.iter().any(|it| it.hides)
    };
    assert!(!hides(fine));
    assert!(!hides(
        "import urllib.parse\nprint(urllib.parse.quote('x'))"
    ));
    for more in [
        "os.spawnlp(0, 'rm', 'rm', 'x')",
        "o = os\no.spawnlp(0, 'rm')",
        "def f(o): o.spawnlp(0, 'rm')\nf(os)",
        "[os][0].spawnlp(0, 'rm')",
        "json.codecs.os.spawnlp(0, 'rm')",
        "os.path.os.spawnlp(0, 'rm')",
        "os.walk.__globals__['spawnlp'](0, 'rm')",
        "getattr(json, 'x')",
        "vars(json)['x']",
        "from os import spawnlp",
        "import os as o",
        "import helper",
        "import json, helper",
        "import urllib.parse\nurllib.request.urlopen('http://x')",
        "os.remove('x')",
        "import subprocess\nsubprocess.run(['rm', 'x'])",
        "match os:\n    case object(spawnlp=f): f(0, 'rm')",
        "'{0.spawnlp}'.format(os)",
        "(",
    ] {
        assert!(hides(&format!("{fine}{more}\n")), "{more}");
    }
}

#[test]
fn code_hides_commands_when_it_could_start_one() {
    for (script, hides) in [
        ("python3 -c 'print(1)'", false),
        ("python3 -c 'import os; os.system(\"rm x\")'", true),
        ("python3 -c \"$X\"", true),
        ("node -e 'console.log(1)'", false),
        (
            "node -e 'require(\"child_process\").execSync(\"rm x\")'",
            true,
        ),
        ("perl -e 'unlink \"x\"'", true),
        ("git -c alias.p=push p", true),
        ("awk 'BEGIN { system(\"rm x\") }'", true),
        ("tar cf /dev/null a --to-command=rm", true),
        ("vim -c '!rm x'", true),
        ("BASH_ENV=a ls", true),
        ("export LD_PRELOAD=a", true),
        ("echo $(ls)", false),
        ("ls", false),
    ] {
        let reading = read(&shell(script));
        assert_eq!(reading.blind.iter().any(|it| it.hides), hides, "{script}");
    }
}
