/** A minimal stdio MCP server with prebuilt results. It writes once per turn of the event loop. */
import { parseArgs } from 'node:util';
import { eraNamed } from '../eras.ts';
import { answerHead, createAnswers, errorJson, type Request } from './answers.ts';

const { values } = parseArgs({
  options: { era: { type: 'string', default: 'legacy' }, tools: { type: 'string', default: '3' } },
});
const answerTo = createAnswers(eraNamed(values.era), Number(values.tools));

let unfinishedLine = '';
let pendingText = '';
let flushIsDue = false;

process.stdin.setEncoding('utf8');
process.stdin.on('data', (text: string) => {
  const lines = (unfinishedLine + text).split('\n');
  unfinishedLine = lines.pop() ?? '';
  for (const line of lines) {
    if (line.length > 0) answer(JSON.parse(line) as Request);
  }
});
process.stdin.on('end', () => process.exit(0));

function answer(request: Request): void {
  if (request.id === undefined) return;
  const result = answerTo(request);
  if (result === undefined) {
    writeSoon(`${errorJson(request)}\n`);
  } else if (typeof result === 'string') {
    writeSoon(`${answerHead(request.id)}${result}}\n`);
  } else {
    writeSoon(answerHead(request.id));
    flush();
    process.stdout.write(result);
    writeSoon('}\n');
  }
}

function writeSoon(text: string): void {
  pendingText += text;
  if (flushIsDue) return;
  flushIsDue = true;
  setImmediate(() => {
    flushIsDue = false;
    flush();
  });
}

function flush(): void {
  if (pendingText.length === 0) return;
  const text = pendingText;
  pendingText = '';
  process.stdout.write(text, 'latin1');
}
