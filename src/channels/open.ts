import type { ServerTransport } from '../config.ts';
import type { Channel, Receiver } from './channel.ts';
import { HttpChannel } from './http.ts';
import { SseChannel } from './sse.ts';
import { StdioChannel } from './stdio.ts';

/** Opens a channel of the kind that the server is reached by. Variables are resolved already. */
export function openChannel(
  transport: ServerTransport,
  maxMessageBytes: number,
  receiver: Receiver,
): Channel {
  switch (transport.type) {
    case 'stdio':
      return new StdioChannel(transport, maxMessageBytes, receiver);
    case 'http':
      return new HttpChannel(transport, maxMessageBytes, receiver);
    case 'sse':
      return new SseChannel(transport, maxMessageBytes, receiver);
  }
}
