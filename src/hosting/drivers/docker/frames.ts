const HEADER_BYTES = 8;
const STDERR = 2;

export interface FrameHandlers {
  /** A frame may come in several parts. */
  stdout(bytes: Buffer): void;
  stderr(bytes: Buffer): void;
}

/**
 * Demultiplexes the output of a container. Each frame has a header of eight bytes: the first is the stream, the last four
 * are the length. Bytes are passed on as they arrive, without copies.
 */
export class FrameSplitter {
  private readonly handlers: FrameHandlers;
  private readonly header = Buffer.alloc(HEADER_BYTES);
  private headerBytes = 0;
  /** Remaining bytes of the current frame. */
  private left = 0;

  constructor(handlers: FrameHandlers) {
    this.handlers = handlers;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) rest = this.left === 0 ? this.readHeader(rest) : this.readContent(rest);
  }

  private readHeader(bytes: Buffer): Buffer {
    const taken = bytes.copy(this.header, this.headerBytes);
    this.headerBytes += taken;
    if (this.headerBytes === HEADER_BYTES) {
      this.headerBytes = 0;
      this.left = this.header.readUInt32BE(4);
    }
    return bytes.subarray(taken);
  }

  private readContent(bytes: Buffer): Buffer {
    const content = bytes.subarray(0, this.left);
    this.left -= content.length;
    if (this.header[0] === STDERR) this.handlers.stderr(content);
    else this.handlers.stdout(content);
    return bytes.subarray(content.length);
  }
}
