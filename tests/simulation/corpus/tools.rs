//! The tools that people and agents run all day.

use support::Caller;

use super::{PLAIN, Program, all};

const REPOSITORY: &str = "git init -q -b main .; echo one > one; mkdir src; echo a > src/a; echo b > src/b; \
                          git add .; git commit -q -m first";
/// Times and inodes of files stand in it.
const INDEX: &[&str] = &[".git/index"];

const WHEEL: &str = "cat > make.py <<'END'
import base64, hashlib, zipfile
files = {'hello/__init__.py': b'def hello():\\n    return 1\\n', 'hello/data.txt': b'data\\n',
         'hello-1.0.dist-info/METADATA': b'Metadata-Version: 2.1\\nName: hello\\nVersion: 1.0\\n',
         'hello-1.0.dist-info/WHEEL': b'Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'}
def line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    return f'{name},sha256={digest},{len(data)}\\n'
record = ''.join(line(*it) for it in files.items()) + 'hello-1.0.dist-info/RECORD,,\\n'
with zipfile.ZipFile('hello-1.0-py3-none-any.whl', 'w') as archive:
    for name, data in {**files, 'hello-1.0.dist-info/RECORD': record.encode()}.items():
        archive.writestr(name, data)
END
python3 make.py";

const TARBALL: &str = "mkdir package; echo '{\"name\": \"hello\", \"version\": \"1.0.0\", \"main\": \"index.js\"}' > package/package.json; \
                       echo 'module.exports = 1' > package/index.js; tar -czf hello-1.0.0.tgz package; rm -r package; \
                       echo '{\"name\": \"app\", \"version\": \"1.0.0\"}' > package.json";

const SOURCES: &str = "for i in 1 2 3; do printf 'int f%d(void) { return %d; }\\n' $i $i > f$i.c; done
printf 'int f1(void); int f2(void); int f3(void);\\nint main(void) { return f1() + f2() + f3() - 6; }\\n' > main.c
printf 'objects = f1.o f2.o f3.o main.o\\napp: $(objects)\\n\\tgcc -o app $(objects)\\n%%.o: %%.c\\n\\tgcc -c -o $@ $<\\nclean:\\n\\trm -f app $(objects)\\n' > Makefile";

const TOOLS: [Program; 23] = [
    Program {
        name: "git-init",
        given: "echo one > one",
        volatile: INDEX,
        command: "git init -q -b main . && git add . && git commit -q -m first",
        ..PLAIN
    },
    Program {
        name: "git-commit",
        given: REPOSITORY,
        volatile: INDEX,
        command: "echo two >> one; rm src/b; echo c > src/c; git add -A && git commit -q -m second",
        ..PLAIN
    },
    Program {
        name: "git-checkout",
        volatile: INDEX,
        given: "git init -q -b main .; mkdir d; echo 1 > d/x; git add .; git commit -q -m 1; git checkout -q -b other; \
                git rm -q -r d; echo file > d; git add .; git commit -q -m 2; git checkout -q main",
        command: "git checkout -q other",
        ..PLAIN
    },
    Program {
        name: "git-merge",
        volatile: INDEX,
        given: "git init -q -b main .; seq 9 > f; git add .; git commit -q -m 1; git checkout -q -b other; sed -i s/1/one/ f; \
                git commit -qam 2; git checkout -q main; sed -i s/9/nine/ f; git commit -qam 3",
        command: "git merge -q --no-edit other",
        ..PLAIN
    },
    Program {
        name: "git-merge-conflict",
        volatile: INDEX,
        given: "git init -q -b main .; echo 1 > f; git add .; git commit -q -m 1; git checkout -q -b other; echo 2 > f; \
                git commit -qam 2; git checkout -q main; echo 3 > f; git commit -qam 3",
        command: "git merge -q other",
        ..PLAIN
    },
    Program {
        name: "git-gc",
        volatile: INDEX,
        given: "git init -q -b main .; for i in 1 2 3 4 5; do echo $i > f$i; git add .; git commit -q -m $i; done",
        command: "git -c pack.threads=1 gc -q",
        ..PLAIN
    },
    Program {
        name: "git-stash",
        given: REPOSITORY,
        volatile: INDEX,
        command: "echo two >> one; echo x > src/a; git stash -q; git stash pop -q",
        ..PLAIN
    },
    Program {
        name: "git-worktree",
        given: REPOSITORY,
        volatile: &[".git/index", "*/index"],
        command: "git branch b; git worktree add -q side b; git -C side mv one uno; git -C side commit -q -m moved",
        ..PLAIN
    },
    Program {
        name: "pip-install",
        given: WHEEL,
        volatile: &["*.pyc"],
        command: "python3 -m pip --disable-pip-version-check --no-cache-dir install -q --no-index --target lib ./hello-1.0-py3-none-any.whl",
        ..PLAIN
    },
    Program {
        name: "pip-install-without-bytecode",
        given: WHEEL,
        command: "python3 -m pip --disable-pip-version-check --no-cache-dir install -q --no-compile --no-index --target lib ./hello-1.0-py3-none-any.whl",
        ..PLAIN
    },
    Program {
        name: "python-venv",
        command: "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'",
        ..PLAIN
    },
    Program {
        name: "python-bytecode",
        given: "mkdir pkg; echo 'X = 1' > pkg/__init__.py; echo 'import pkg' > main.py",
        volatile: &["*.pyc"],
        command: "python3 main.py",
        ..PLAIN
    },
    Program {
        name: "npm-install",
        given: TARBALL,
        needs: Some("npm"),
        command: "npm install --offline --no-audit --no-fund --no-update-notifier --loglevel=error ./hello-1.0.0.tgz",
        ..PLAIN
    },
    Program {
        name: "node-writes",
        command: "node -e 'const fs = require(\"fs\"); fs.mkdirSync(\"out\"); fs.writeFileSync(\"out/a.json\", \"{}\"); fs.renameSync(\"out/a.json\", \"out/b.json\")'",
        ..PLAIN
    },
    Program {
        name: "make",
        given: SOURCES,
        needs: Some("make"),
        command: "make -s",
        ..PLAIN
    },
    Program {
        name: "make-clean",
        given: SOURCES,
        needs: Some("make"),
        command: "make -s && ./app && make -s clean && echo ok > done",
        ..PLAIN
    },
    Program {
        name: "sqlite-migration",
        given: "python3 -c 'import sqlite3; db = sqlite3.connect(\"shop.db\"); db.execute(\"create table t (a, b)\"); db.executemany(\"insert into t values (?, ?)\", [(i, i * i) for i in range(500)]); db.commit()'",
        command: "python3 -c 'import sqlite3; db = sqlite3.connect(\"shop.db\"); db.execute(\"alter table t add column c\"); db.execute(\"update t set c = a + b\"); db.execute(\"create index i on t (c)\"); db.commit(); db.execute(\"vacuum\")'",
        ..PLAIN
    },
    Program {
        name: "sqlite-write-ahead",
        command: "python3 -c 'import sqlite3; db = sqlite3.connect(\"w.db\"); db.execute(\"pragma journal_mode=wal\"); db.execute(\"create table t (a)\"); db.executemany(\"insert into t values (?)\", [(i,) for i in range(2000)]); db.commit(); db.close()'",
        ..PLAIN
    },
    Program {
        name: "tar-extract",
        given: "mkdir -p x/y; echo 1 > x/y/f; ln -s f x/y/l; chmod 700 x/y; echo s > x/s; chmod 755 x/s; tar -czf x.tgz x; rm -r x",
        command: "tar -xzf x.tgz",
        ..PLAIN
    },
    Program {
        name: "tar-create",
        given: "mkdir -p x/y; echo 1 > x/y/f; echo 2 > x/g",
        command: "tar --sort=name --mtime=2001-01-01 -cf x.tar x && gzip -n x.tar && rm -r x",
        ..PLAIN
    },
    Program {
        name: "zip",
        given: "mkdir -p x; seq 50 > x/f; touch -d 2001-01-01 x/f x",
        needs: Some("zip"),
        command: "zip -q -X -r x.zip x",
        ..PLAIN
    },
    Program {
        name: "patch",
        given: "mkdir d; seq 9 > d/f; sed s/5/five/ d/f > d/g; diff -u --label d/f --label d/f d/f d/g > p || :; rm d/g",
        needs: Some("patch"),
        command: "patch -s -p0 < p",
        ..PLAIN
    },
    Program {
        name: "perl-awk-sort",
        given: "seq 20 > a; printf 'b 1\\na 2\\n' > t",
        command: "perl -pi -e 's/1/one/' a; awk '{print $2, $1}' t > swapped; sort -o t t; split -l 10 a part-; tee x y < t > /dev/null; install -m 750 t bin",
        ..PLAIN
    },
];

#[test]
fn what_tools_do_is_told_and_applied_and_nothing_else() {
    all(Caller::Root, &TOOLS);
}

#[test]
fn what_an_ordinary_users_tools_do_is_told_and_applied() {
    let some = [
        "git-commit",
        "git-gc",
        "pip-install",
        "make",
        "sqlite-migration",
        "tar-extract",
    ];
    let chosen: Vec<Program> = TOOLS
        .into_iter()
        .filter(|it| some.contains(&it.name))
        .collect();
    assert_eq!(chosen.len(), some.len());
    all(Caller::User, &chosen);
}
