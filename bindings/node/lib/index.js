'use strict';

const { Agent, Reply, Session } = require('./agent.js');
const { byCode, SwitchboardError } = require('./errors.js');
const { Host } = require('./host.js');
const { CallResult, Tool } = require('./values.js');

module.exports = { Agent, CallResult, Host, Reply, Session, SwitchboardError, Tool };
for (const Class of Object.values(byCode)) module.exports[Class.name] = Class;
