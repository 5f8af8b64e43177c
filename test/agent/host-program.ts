// A program with an agent, for tests of how it ends: starts the servers in its first argument, says so, and waits.
import { AiAgent } from '../../src/agent.ts';

const agent = new AiAgent({ servers: JSON.parse(process.argv[2] ?? '{}'), model: 'claude-stand-in' });
process.stdin.once('data', () => process.exit(3));
await agent.start();
process.stdout.write('started\n');
