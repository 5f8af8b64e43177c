import { MAX_LOG_LINE } from '../../channels/line-pipe.ts';
import { join } from '../../protocol/jsonrpc.ts';
import { LineSplitter } from '../../protocol/lines.ts';

/** Splits the output of an instance into log lines. */
export function logLines(log: (line: string) => void): LineSplitter {
  return new LineSplitter(MAX_LOG_LINE, {
    line: (chunks) => log(join(chunks).toString()),
    tooLong: () => log(`a line over ${MAX_LOG_LINE} bytes is skipped`),
  });
}
