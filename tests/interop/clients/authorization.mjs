// Adds a token to every HTTP request of a Node program that has no option for one:
//
//   SWITCHBOARD_TEST_TOKEN=TOKEN node --import ./authorization.mjs PROGRAM
//
// Node reports the requests of `fetch`, of undici and of `node:http` before it sends them.

import diagnostics from "node:diagnostics_channel";

const value = `Bearer ${process.env.SWITCHBOARD_TEST_TOKEN}`;

diagnostics.subscribe("undici:request:create", ({ request }) => request.addHeader("authorization", value));
diagnostics.subscribe("http.client.request.created", ({ request }) => request.setHeader("authorization", value));
