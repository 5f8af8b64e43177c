import { exitCodes } from './cli/exit.ts';
import { complain, watchOutput } from './cli/output.ts';
import { run } from './cli/run.ts';

watchOutput((error) => {
  complain(`error: Cannot write the output: ${error.message}`);
  process.exitCode ||= exitCodes.failed;
});
const exitCode = await run(process.argv.slice(2));
process.exitCode ||= exitCode;
