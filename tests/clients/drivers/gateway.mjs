// Shared by the drivers of gateways that serve over HTTP: start one, and wait until it listens.
import { spawn } from 'node:child_process';

export const PORT = String(20000 + (process.pid % 20000));

export async function start(script, ...args) {
  const gateway = spawn(process.execPath, [`node_modules/${script}`, ...args]);
  process.on('exit', () => gateway.kill());
  gateway.stderr.on('data', text => process.stderr.write(text));
  for (;;) {
    try {
      return await fetch(`http://127.0.0.1:${PORT}/`);
    } catch {
      await new Promise(resolve => setTimeout(resolve, 100));
    }
  }
}
