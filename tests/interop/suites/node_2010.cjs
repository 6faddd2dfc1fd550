// What a client of 2010 expects of node, for a node of today; it is loaded before the tests.

"use strict";

const net = require("net");
const util = require("util");

globalThis.GLOBAL = globalThis;
util.puts = (...words) => console.log(...words);
util.error = (...words) => console.error(...words);

// A socket was not "ready" then by itself: the client says so when it has logged in.
const emit = net.Socket.prototype.emit;
net.Socket.prototype.emit = function (event, ...rest) {
  return event === "ready" && !this.serverProperties ? false : emit.call(this, event, ...rest);
};
