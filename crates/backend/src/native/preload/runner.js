// Waits for a program and becomes it. Nothing of this may be seen by the program but what `node -e`
// shows as well; whatever is not as expected ends here, before anything of the program runs.
(() => {
  const fs = require('fs');
  const path = require('path');
  const vm = require('vm');
  const { Module } = require('module');
  const loader = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (!/^v20\./.test(process.version) || loader === undefined) {
    // Others decide in other ways what kind of program it is.
    fs.writeSync(2, 'this version of Node.js is not known here\n');
    process.reallyExit(1);
  }
  for (const name of ['assert', 'buffer', 'events', 'net', 'os', 'stream', 'tty', 'url', 'util']) {
    require(name);
  }
  // Said once, and of no interest to the program.
  const emitWarning = process.emitWarning;
  process.emitWarning = () => {};
  vm.runInThisContext("import('fs')", { importModuleDynamically: loader });
  process.emitWarning = emitWarning;
  fs.writeSync(3, 'R');

  const take = (count) => {
    const taken = Buffer.alloc(count);
    for (let at = 0; at < count;) {
      const length = fs.readSync(3, taken, at, count - at, null);
      if (length === 0) process.reallyExit(1);
      at += length;
    }
    return taken;
  };
  const body = take(take(4).readUInt32LE(0));
  let at = 1;
  const number = () => {
    at += 4;
    if (at > body.length) process.reallyExit(1);
    return body.readUInt32LE(at - 4);
  };
  const string = () => {
    const length = number();
    at += length;
    if (at > body.length) process.reallyExit(1);
    return body.toString('utf8', at - length, at);
  };
  const hasStdin = body[0] === 1;
  const code = string();
  const directory = string();
  const variables = [];
  for (let left = number(); left > 0; left -= 1) variables.push([string(), string()]);
  if (at !== body.length) process.reallyExit(1);

  try {
    process.chdir(directory);
  } catch (error) {
    const answer = Buffer.alloc(5);
    answer.write('C');
    answer.writeInt32LE(-error.errno, 1);
    fs.writeSync(3, answer);
    process.reallyExit(127);
  }
  for (const key of Object.keys(process.env)) delete process.env[key];
  for (const [key, value] of variables) process.env[key] = value;
  if (!hasStdin) {
    // The lowest number that is free is this one.
    fs.closeSync(0);
    if (fs.openSync('/dev/null', 'r') !== 0) process.reallyExit(1);
  }

  const module = new Module('[eval]');
  module.filename = path.join(directory, '[eval]');
  module.paths = Module._nodeModulePaths(directory);
  globalThis.__filename = '[eval]';
  module._compile(
    'globalThis.module = module; globalThis.exports = exports;' +
    'globalThis.__dirname = __dirname; globalThis.require = require;',
    '[eval]-wrapper',
  );
  process.execArgv = ['-e', code];
  process._eval = code;
  fs.writeSync(3, 'G');
  fs.closeSync(3);
  vm.runInThisContext(code, {
    filename: '[eval]',
    displayErrors: true,
    importModuleDynamically: loader,
  });
})();
//# sourceURL=[eval]-wrapper
