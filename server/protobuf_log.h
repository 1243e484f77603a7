// What the protobuf library has to say, as lines of our log. It is about messages of others that are not as they should
// be, so anybody can make it say much: one line in a while, with how many were left out.
#pragma once

// Once, before there are threads.
void log_for_protobuf();
